"""The parts of a loop in virtual time that asyncio has in a dearer form, or with waiting."""
