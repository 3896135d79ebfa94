"""What a worker process of the local engine runs: python _worker_main.py [NODE=INTERPRETER…]

It is started by its path, so that it is the driver's roost whatever the interpreter has installed. The
first request tells which worker to make; then it answers calls until the driver has gone."""

import os
import sys


def use_interpreter(words: list[str]) -> None:
    """Becomes the interpreter that the node of this process is to have."""
    wanted = dict(word.split("=", 1) for word in words).get(os.environ.get("RANK", ""))
    if wanted and not os.path.samefile(wanted, sys.executable):
        os.execv(wanted, [wanted, "-P", __file__])


def import_own_package() -> None:
    """Finds roost, and cloudpickle beside it, where the driver has them."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, folder)
    try:
        import cloudpickle

        import roost._serve
    finally:
        sys.path.remove(folder)


def main() -> int:
    use_interpreter(sys.argv[1:])
    import_own_package()
    from roost import _roost
    from roost._serve import serve

    sys.argv = [""]
    return serve(_roost.WorkerChannel.open(dict(os.environ)), os.environ)


if __name__ == "__main__":
    sys.exit(main())
