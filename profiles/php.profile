# PHP, built with --enable-dtrace as the distributions do, and run with USE_ZEND_DTRACE=1. See docs/profiles/php.md.
when php:request__startup
# Fatal errors leave functions without their end, up to the request.
php:function__entry..function__return name="{class}{scope}{function}" class=arg3:str scope=arg4:str function=arg0:str \
    file=arg1:str line=arg2 end.function=arg0:str nested
php:request__startup..request__shutdown name="{method} {uri}" file=arg0:str uri=arg1:str method=arg2:str
php:compile__file__entry..compile__file__return name="compile {file}" file=arg1:str end.opened=arg0:str
php:exception__thrown name="throw {class}" class=arg0:str
# Its argument is no text: see the page.
php:exception__caught name="catch" -
php:error name="error" message=arg0:str file=arg1:str line=arg2 level=error
