"""What is exercised: each kind of component without its derivative, and the cases that a solution is run on."""
