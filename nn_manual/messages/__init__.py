"""What a person reads of an error or an object: lines of text, and pages of a notebook."""
