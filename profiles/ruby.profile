# Ruby (the reference implementation), built with its probes as the distributions do. See docs/profiles/ruby.md.
when ruby:cmethod__entry
ruby:method__entry..method__return name="{class}#{method}" class=arg0:str method=arg1:str file=arg2:str line=arg3 \
    end.method=arg1:str
# Kernel#raise and #fail tell their begin only.
ruby:cmethod__entry..cmethod__return name="{class}#{method}" class=arg0:str method=arg1:str file=arg2:str line=arg3 \
    end.method=arg1:str level=debug if arg1 != "raise" && arg1 != "fail"
ruby:gc__mark__begin..gc__mark__end name="gc mark"
ruby:gc__sweep__begin..gc__sweep__end name="gc sweep"
ruby:parse__begin..parse__end name="parse {file}" file=arg0:str line=arg1
ruby:find__require__entry..find__require__return name="find {feature}" feature=arg0:str file=arg1:str line=arg2
# Exceptions leave these without their end; they lie in the C method of that name, and go with it.
ruby:require__entry..require__return name="require {feature}" feature=arg0:str file=arg1:str line=arg2 \
    end.feature=arg0:str nested level=debug
ruby:load__entry..load__return name="load {feature}" feature=arg0:str file=arg1:str line=arg2 \
    end.feature=arg0:str nested level=debug
ruby:raise name="raise {class}" class=arg0:str file=arg1:str line=arg2
