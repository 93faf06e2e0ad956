"""`python -m ncc` is `ncc`; `python -m ncc script.py ...` runs a script that imports `nki`."""

import sys

if len(sys.argv) > 1 and sys.argv[1].endswith(".py"):
    from ncc.scripts import run_script

    run_script(sys.argv[1:])
else:
    from ncc.cli import main

    main()
