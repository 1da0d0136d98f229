# Calls of Python functions as spans, for builds where both ends work: 3.6 to 3.10, and 3.15. Not used by itself; expensive.
# --profile python --profile python-functions. See docs/profiles/python.md

python:function__entry..function__return name="{function}" nested \
	function=arg1:str file=arg0:str line=arg2 end.function=arg1:str end.file=arg0:str
