def register_all(): pass
def refuse_unsafe_role(): pass
