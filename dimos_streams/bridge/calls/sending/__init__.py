"""What the bridge tells modules of their calls, again and again until it is heard."""
