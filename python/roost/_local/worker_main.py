"""The program of a worker process on the local engine: python worker_main.py [RANK=INTERPRETER…]

The supervisor starts it by its path, so that it uses the driver's roost whatever the interpreter has installed. The first
request says which worker to make. The process then answers calls until the driver has gone."""

import os
import sys


def use_interpreter(words: list[str]) -> None:
    """Executes the interpreter that is meant for the rank of this process."""
    wanted = dict(word.split("=", 1) for word in words).get(os.environ.get("RANK", ""))
    if wanted and not os.path.samefile(wanted, sys.executable):
        os.execv(wanted, [wanted, "-P", __file__])


def import_own_package() -> None:
    """Imports roost, and cloudpickle beside it, from where the driver has them."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, folder)
    try:
        import cloudpickle  # noqa: F401  here, while the folder is on the path

        import roost._local.serve  # noqa: F401
    finally:
        sys.path.remove(folder)


def main() -> int:
    use_interpreter(sys.argv[1:])
    import_own_package()
    from roost import _roost
    from roost._local.serve import serve

    sys.argv = [""]
    return serve(_roost.WorkerSocket.open(dict(os.environ)), os.environ)


if __name__ == "__main__":
    sys.exit(main())
