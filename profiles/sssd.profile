# The providers of SSSD (sssd_be). See docs/profiles/sssd.md.
when sssd:dp_req_send
sssd:dp_req_send name="request" request=arg1:str domain=arg0:str target=arg2 method=arg3
sssd:dp_req_done name="request done" request=arg0:str target=arg1 method=arg2 error=arg3 message=arg4:str

when sssd:sysdb_transaction_start
sssd:sysdb_transaction_start..sysdb_transaction_commit_after|sysdb_transaction_cancel name="sysdb transaction" \
    nesting=arg0
sssd:sysdb_transaction_cancel name="sysdb cancel" level=warn nesting=arg0

when sssd:sdap_get_generic_ext_send
sssd:sdap_acct_req_send name="account request" type=arg0:hex filter=arg1 value=arg2:str extra=arg3:str
sssd:sdap_acct_req_recv name="account reply" type=arg0:hex filter=arg1 value=arg2:str extra=arg3:str
sssd:sdap_get_generic_ext_send name="search" base=arg0:str scope=arg1 filter=arg2:str
sssd:sdap_get_generic_ext_recv name="search done" base=arg0:str scope=arg1 filter=arg2:str
sssd:sdap_deref_search_send name="deref" base=arg0:str attribute=arg1:str
sssd:sdap_deref_search_recv name="deref done" base=arg0:str attribute=arg1:str
sssd:sdap_search_user_send name="user search" filter=arg0:str
sssd:sdap_search_user_recv name="user search done" filter=arg0:str
sssd:sdap_search_user_save_begin..sdap_search_user_save_end name="user save" filter=arg0:str
sssd:sdap_nested_group_*_pre..sdap_nested_group_*_post -
sssd:sdap_nested_group_process_send name="nested group" dn=arg0:str
sssd:sdap_nested_group_process_recv name="nested group done" dn=arg0:str
