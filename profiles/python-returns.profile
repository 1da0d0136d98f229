# Returns of Python functions as events, for 3.11, where only the return works. Not used by itself; expensive.
# --profile python --profile python-returns. See docs/profiles/python.md

python:function__return name="return {function}" function=arg1:str file=arg0:str line=arg2 level=debug
