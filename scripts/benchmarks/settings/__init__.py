"""Settings that the tests must hold in: other processors, users, loads and versions than those of the machine."""
