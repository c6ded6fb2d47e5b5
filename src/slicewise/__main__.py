"""`python -m slicewise`."""

from slicewise.cli.main import main

if __name__ == "__main__":
    main()
