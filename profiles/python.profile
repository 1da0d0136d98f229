# CPython, built --with-dtrace as the distributions do. See docs/profiles/python.md.
when python:gc__start
python:gc__start..gc__done name="gc" generation=arg0 end.collected=arg0
python:import__find__load__start..import__find__load__done name="import" module=arg0:str end.found=arg1:bool
