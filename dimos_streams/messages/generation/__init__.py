"""Classes made from definitions: reading ``.lcm`` files, stubs for type checkers, and the same for Java."""
