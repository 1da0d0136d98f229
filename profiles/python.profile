# CPython. Builds of the distributions have the probes (--with-dtrace). See docs/profiles/python.md

when python:gc__start

python:gc__start..gc__done name="gc generation {generation}" generation=arg0 end.collected=arg0

# An import that is not in sys.modules yet, the imports that it makes inside.
python:import__find__load__start..import__find__load__done name="import {module}" module=arg0:str end.found=arg1:bool

# Audit events (sys.addaudithook), but the two that code says all the time.
python:audit name="audit {event}" event=arg0:str level=debug if arg0 != "builtins.id" && arg0 != "sys._getframe"

# Not here: `line`, which makes Python 3.11 crash; functions, see python-functions and python-returns.
