"""The door before the SDK's server: which viewers get past it, and how what they and the SDK send is passed on."""
