CREATE SCHEMA __schema__;
CREATE TABLE __schema__.api_apikey (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name character varying(120) NOT NULL,
    prefix character varying(12) NOT NULL,
    secret_digest character varying(64) NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    program_id uuid,
    parent_id uuid,
    revoked_at timestamp with time zone,
    scopes text[] NOT NULL,
    agent_id uuid,
    user_id text,
    last_used_at timestamp with time zone,
    created_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT api_key_scopes CHECK (((scopes <@ ARRAY['read'::text, 'write'::text, 'erase'::text, 'keys'::text]) AND (
CASE
    WHEN (scopes IS NULL) THEN NULL::integer
    ELSE COALESCE(array_length(scopes, 1), 0)
END > 0))),
    CONSTRAINT api_key_user CHECK ((NOT ((user_id = ''::text) AND (user_id IS NOT NULL)))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.api_apikey FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.api_apikey IS 'A program''s access to its tenant''s API.';
COMMENT ON COLUMN __schema__.api_apikey.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.api_apikey.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.api_apikey.name IS 'Name of the program that uses it.';
COMMENT ON COLUMN __schema__.api_apikey.prefix IS 'Part of the key by which it is found.';
COMMENT ON COLUMN __schema__.api_apikey.secret_digest IS 'SHA-256 of the key''s secret.';
COMMENT ON COLUMN __schema__.api_apikey.created_at IS 'Time of creation.';
COMMENT ON COLUMN __schema__.api_apikey.expires_at IS 'The key is refused from this time on. Empty: it does not expire.';
COMMENT ON COLUMN __schema__.api_apikey.program_id IS 'Id of the program''s first key, if this key replaced or was made by another one.';
COMMENT ON COLUMN __schema__.api_apikey.parent_id IS 'The key that made it, with which it is revoked. Empty: none.';
COMMENT ON COLUMN __schema__.api_apikey.revoked_at IS 'When it was revoked.';
COMMENT ON COLUMN __schema__.api_apikey.scopes IS 'Scopes of the key.';
COMMENT ON COLUMN __schema__.api_apikey.agent_id IS 'The only agent that this key can use. Empty: all agents.';
COMMENT ON COLUMN __schema__.api_apikey.user_id IS 'The only end user that this key can write for and read. Empty: all users.';
COMMENT ON COLUMN __schema__.api_apikey.last_used_at IS 'When it was last used, to within a few minutes.';
COMMENT ON COLUMN __schema__.api_apikey.created_by IS 'Id of the person who created it. Empty: created by an operator''s command.';
CREATE TABLE __schema__.api_creation (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    operation text NOT NULL,
    key character varying(255) NOT NULL,
    digest character varying(64) NOT NULL,
    made uuid NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.api_creation FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.api_creation IS 'The row that a POST with an Idempotency-Key created. Append-only.';
COMMENT ON COLUMN __schema__.api_creation.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.api_creation.operation IS 'Method and path of the request.';
COMMENT ON COLUMN __schema__.api_creation.key IS 'Caller, and digest of the Idempotency-Key.';
COMMENT ON COLUMN __schema__.api_creation.digest IS 'SHA-256 of the request''s body.';
COMMENT ON COLUMN __schema__.api_creation.made IS 'Id of the created object.';
COMMENT ON COLUMN __schema__.api_creation.created_at IS 'Time of creation.';
CREATE TABLE __schema__.audit_accessevent (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    actor_kind text NOT NULL,
    actor_id text NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    subject_id text DEFAULT ''::text NOT NULL,
    agent_id uuid,
    pseudonym uuid,
    pseudonyms uuid[],
    people_count integer,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL,
    request_id text DEFAULT ''::text NOT NULL,
    address inet,
    CONSTRAINT audit_accessevent_people_count_check CHECK ((people_count >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.audit_accessevent FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.audit_accessevent IS 'An event of the access log: actor, action, subject, time and address. Append-only.';
COMMENT ON COLUMN __schema__.audit_accessevent.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.audit_accessevent.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.audit_accessevent.created_at IS 'Time of the event.';
COMMENT ON COLUMN __schema__.audit_accessevent.actor_kind IS 'Kind of the actor.';
COMMENT ON COLUMN __schema__.audit_accessevent.actor_id IS 'Id of the person, or of the API key.';
COMMENT ON COLUMN __schema__.audit_accessevent.actor IS 'Name of the actor at that time.';
COMMENT ON COLUMN __schema__.audit_accessevent.action IS 'The action.';
COMMENT ON COLUMN __schema__.audit_accessevent.subject IS 'Type of the object: conversation, memories, fact, API key …';
COMMENT ON COLUMN __schema__.audit_accessevent.subject_id IS 'Id of the object, if the action had a single one.';
COMMENT ON COLUMN __schema__.audit_accessevent.agent_id IS 'The agent, if the action concerned a single one.';
COMMENT ON COLUMN __schema__.audit_accessevent.pseudonym IS 'Pseudonym of the person, if the action concerned a single one.';
COMMENT ON COLUMN __schema__.audit_accessevent.pseudonyms IS 'Pseudonyms of the people that were shown, at most 200.';
COMMENT ON COLUMN __schema__.audit_accessevent.people_count IS 'The number of people that were shown.';
COMMENT ON COLUMN __schema__.audit_accessevent.detail IS 'Numbers and words of the action; for a change, the values before and after. Texts are left out.';
COMMENT ON COLUMN __schema__.audit_accessevent.request_id IS 'Id of the request, as in its log lines, if it is a UUID.';
COMMENT ON COLUMN __schema__.audit_accessevent.address IS 'IP address of the client.';
ALTER TABLE __schema__.audit_accessevent ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.audit_accessevent_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.audit_erasurerequest (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    requested_by text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    done_at timestamp with time zone,
    receipt jsonb,
    agent_id uuid,
    threads text[] DEFAULT '{}'::text[] NOT NULL,
    progress jsonb,
    last_error text DEFAULT ''::text NOT NULL,
    user_ids text[] DEFAULT '{}'::text[] NOT NULL,
    by_bound_key boolean DEFAULT false NOT NULL,
    all_replies boolean DEFAULT false NOT NULL,
    reply_ids uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.audit_erasurerequest FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.audit_erasurerequest IS 'A request to erase a person. It stays as a receipt.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.user_id IS 'Id of the person to erase. After the erasure, a keyed digest of the id.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.reason IS 'Reason.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.requested_by IS 'The person or key that requested it.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.created_at IS 'When it was requested.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.done_at IS 'When it was done.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.receipt IS 'Number of removed rows by table, and the rows that were found left.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.agent_id IS 'The agent to erase the person from. Empty: all agents.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.threads IS 'Graph sessions of the user that the transcript does not name.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.progress IS 'While it runs: the step, and the rows left to remove.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.last_error IS 'Error of the last attempt.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.user_ids IS 'All linked ids of the person when the erasure began. After the erasure, digests.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.by_bound_key IS 'Requested by a key that is bound to an agent or a user.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.all_replies IS 'All replies to others that were written with this person''s words are erased.';
COMMENT ON COLUMN __schema__.audit_erasurerequest.reply_ids IS 'The replies to others that are erased; the others are kept.';
CREATE TABLE __schema__.audit_listexport (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    member_id bigint NOT NULL,
    member text NOT NULL,
    list_name text NOT NULL,
    query text DEFAULT ''::text NOT NULL,
    time_zone text NOT NULL,
    rows integer DEFAULT 0 NOT NULL,
    size bigint DEFAULT 0 NOT NULL,
    user_ids text[] DEFAULT '{}'::text[] NOT NULL,
    people_count integer DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    error text DEFAULT ''::text NOT NULL,
    downloaded_at timestamp with time zone,
    CONSTRAINT audit_listexport_people_count_check CHECK ((people_count >= 0)),
    CONSTRAINT audit_listexport_rows_check CHECK ((rows >= 0)),
    CONSTRAINT audit_listexport_size_check CHECK ((size >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.audit_listexport FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.audit_listexport IS 'An export of a list''s rows: who asked for it, with which filters, and its progress.';
COMMENT ON COLUMN __schema__.audit_listexport.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.audit_listexport.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.audit_listexport.created_at IS 'When it was requested.';
COMMENT ON COLUMN __schema__.audit_listexport.member_id IS 'Id of the member of the team.';
COMMENT ON COLUMN __schema__.audit_listexport.member IS 'Name of the member of the team.';
COMMENT ON COLUMN __schema__.audit_listexport.list_name IS 'The list: the label of a model, or the name of a page.';
COMMENT ON COLUMN __schema__.audit_listexport.query IS 'The filters, as in the address of the list.';
COMMENT ON COLUMN __schema__.audit_listexport.time_zone IS 'Time zone of the times in the file.';
COMMENT ON COLUMN __schema__.audit_listexport.rows IS 'Rows that are written.';
COMMENT ON COLUMN __schema__.audit_listexport.size IS 'Bytes that are written.';
COMMENT ON COLUMN __schema__.audit_listexport.user_ids IS 'The first people in the file, at most 200.';
COMMENT ON COLUMN __schema__.audit_listexport.people_count IS 'The number of people in the file.';
COMMENT ON COLUMN __schema__.audit_listexport.finished_at IS 'When the file was complete.';
COMMENT ON COLUMN __schema__.audit_listexport.error IS 'Why there is no file.';
COMMENT ON COLUMN __schema__.audit_listexport.downloaded_at IS 'When the file was sent, which deletes it.';
CREATE TABLE __schema__.audit_listexportpart (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id bigint NOT NULL,
    number integer NOT NULL,
    content bytea NOT NULL,
    export_id uuid NOT NULL,
    CONSTRAINT audit_listexportpart_number_check CHECK ((number >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.audit_listexportpart FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.audit_listexportpart IS 'A part of the file of an export.';
COMMENT ON COLUMN __schema__.audit_listexportpart.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.audit_listexportpart.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.audit_listexportpart.number IS 'Its place in the file, from 0.';
COMMENT ON COLUMN __schema__.audit_listexportpart.content IS 'Lines of CSV.';
COMMENT ON COLUMN __schema__.audit_listexportpart.export_id IS 'The export.';
ALTER TABLE __schema__.audit_listexportpart ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.audit_listexportpart_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.audit_messageerasure (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    thread_id text NOT NULL,
    message_id uuid,
    reason text DEFAULT ''::text NOT NULL,
    requested_by text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    done_at timestamp with time zone,
    receipt jsonb,
    reply_ids uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.audit_messageerasure FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.audit_messageerasure IS 'A request to erase one message, or a conversation.';
COMMENT ON COLUMN __schema__.audit_messageerasure.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.audit_messageerasure.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.audit_messageerasure.agent_id IS 'The agent of the conversation.';
COMMENT ON COLUMN __schema__.audit_messageerasure.user_id IS 'The user of the conversation.';
COMMENT ON COLUMN __schema__.audit_messageerasure.thread_id IS 'The conversation.';
COMMENT ON COLUMN __schema__.audit_messageerasure.message_id IS 'The message. Empty: the whole conversation.';
COMMENT ON COLUMN __schema__.audit_messageerasure.reason IS 'Reason.';
COMMENT ON COLUMN __schema__.audit_messageerasure.requested_by IS 'The person or key that requested it.';
COMMENT ON COLUMN __schema__.audit_messageerasure.created_at IS 'When it was requested.';
COMMENT ON COLUMN __schema__.audit_messageerasure.last_error IS 'Error of the last attempt.';
COMMENT ON COLUMN __schema__.audit_messageerasure.done_at IS 'When it was done.';
COMMENT ON COLUMN __schema__.audit_messageerasure.receipt IS 'Number of removed rows by table, with digests of the ids.';
COMMENT ON COLUMN __schema__.audit_messageerasure.reply_ids IS 'Replies that quote the message, erased with it.';
CREATE TABLE __schema__.audit_person (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    user_id text NOT NULL,
    pseudonym uuid DEFAULT gen_random_uuid() NOT NULL,
    time_zone text DEFAULT ''::text NOT NULL,
    channel_time_zone text DEFAULT ''::text NOT NULL,
    erasures integer DEFAULT 0 NOT NULL,
    chosen_name text DEFAULT ''::text NOT NULL,
    language text DEFAULT ''::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT audit_person_erasures_check CHECK ((erasures >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.audit_person FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.audit_person IS 'A user with rows in the tenant, and the pseudonym by which the access log names them.';
COMMENT ON COLUMN __schema__.audit_person.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.audit_person.user_id IS 'Id of the user.';
COMMENT ON COLUMN __schema__.audit_person.pseudonym IS 'Random id of the user in the access log. It is deleted with this row.';
COMMENT ON COLUMN __schema__.audit_person.time_zone IS 'The time zone that was chosen for the user, such as Asia/Tokyo.';
COMMENT ON COLUMN __schema__.audit_person.channel_time_zone IS 'The time zone that the channel reports, if none was chosen.';
COMMENT ON COLUMN __schema__.audit_person.erasures IS 'Number of erasures of the user by one agent.';
COMMENT ON COLUMN __schema__.audit_person.chosen_name IS 'The name that a program set.';
COMMENT ON COLUMN __schema__.audit_person.language IS 'The user''s language, such as de or pt-BR, in which Latin words of messages and questions are searched, unless the agent has a language.';
COMMENT ON COLUMN __schema__.audit_person.metadata IS 'Metadata of programs.';
CREATE TABLE __schema__.audit_retentionrule (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    agent_id uuid,
    days integer NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    effective_at timestamp with time zone,
    next_days integer,
    CONSTRAINT audit_retentionrule_days_check CHECK ((days >= 0)),
    CONSTRAINT audit_retentionrule_next_days_check CHECK ((next_days >= 0)),
    CONSTRAINT retention_days CHECK ((days > 0)),
    CONSTRAINT retention_next_days CHECK ((((effective_at IS NULL) AND (next_days IS NULL)) OR ((effective_at IS NOT NULL) AND (next_days > 0)))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.audit_retentionrule FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.audit_retentionrule IS 'The retention period of the conversations of one agent, or of all agents without a rule.';
COMMENT ON COLUMN __schema__.audit_retentionrule.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.audit_retentionrule.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.audit_retentionrule.agent_id IS 'The agent. Empty: all agents without a rule.';
COMMENT ON COLUMN __schema__.audit_retentionrule.days IS 'Older messages are removed every hour.';
COMMENT ON COLUMN __schema__.audit_retentionrule.created_at IS 'Time of creation.';
COMMENT ON COLUMN __schema__.audit_retentionrule.effective_at IS 'When the new period takes effect.';
COMMENT ON COLUMN __schema__.audit_retentionrule.next_days IS 'New, shorter period that has not taken effect yet. Empty: no change is pending.';
CREATE TABLE __schema__.auth_group (
    id integer NOT NULL,
    name character varying(150) NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.auth_group FORCE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_group ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.auth_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.auth_group_permissions (
    id bigint NOT NULL,
    group_id integer NOT NULL,
    permission_id integer NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.auth_group_permissions FORCE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_group_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.auth_group_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.auth_permission (
    id integer NOT NULL,
    name character varying(255) NOT NULL,
    content_type_id integer NOT NULL,
    codename character varying(100) NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.auth_permission FORCE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_permission ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.auth_permission_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.auth_user (
    id integer NOT NULL,
    password character varying(128) NOT NULL,
    last_login timestamp with time zone,
    is_superuser boolean NOT NULL,
    username character varying(150) NOT NULL,
    first_name character varying(150) NOT NULL,
    last_name character varying(150) NOT NULL,
    email character varying(254) NOT NULL,
    is_staff boolean NOT NULL,
    is_active boolean NOT NULL,
    date_joined timestamp with time zone NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.auth_user FORCE ROW LEVEL SECURITY;
CREATE TABLE __schema__.auth_user_groups (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    group_id integer NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.auth_user_groups FORCE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_user_groups ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.auth_user_groups_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE __schema__.auth_user ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.auth_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.auth_user_user_permissions (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    permission_id integer NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.auth_user_user_permissions FORCE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_user_user_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.auth_user_user_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.channels_arrival (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid NOT NULL,
    channel text NOT NULL,
    workspace text NOT NULL,
    key character varying(255) NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    heard jsonb NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.channels_arrival FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.channels_arrival IS 'An event of a channel: stored before the channel is answered, removed when it is processed.';
COMMENT ON COLUMN __schema__.channels_arrival.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.channels_arrival.id IS 'It is derived from the deduplication key.';
COMMENT ON COLUMN __schema__.channels_arrival.channel IS 'slack …';
COMMENT ON COLUMN __schema__.channels_arrival.workspace IS 'The workspace in the channel. Its events are processed in order.';
COMMENT ON COLUMN __schema__.channels_arrival.key IS 'Deduplication key: an event can arrive more than once.';
COMMENT ON COLUMN __schema__.channels_arrival.created_at IS 'When it arrived.';
COMMENT ON COLUMN __schema__.channels_arrival.heard IS 'The event: the message, its sender and its place.';
CREATE TABLE __schema__.channels_delivery (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    message_id uuid NOT NULL,
    channel text NOT NULL,
    address jsonb NOT NULL,
    posted jsonb DEFAULT '[]'::jsonb NOT NULL,
    intent integer,
    delivered_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT channels_delivery_intent_check CHECK ((intent >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.channels_delivery FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.channels_delivery IS 'A message that is shown in a channel: where it is shown, and by which posts.';
COMMENT ON COLUMN __schema__.channels_delivery.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.channels_delivery.message_id IS 'message';
COMMENT ON COLUMN __schema__.channels_delivery.channel IS 'slack …';
COMMENT ON COLUMN __schema__.channels_delivery.address IS 'Where it is shown, in the channel''s own format.';
COMMENT ON COLUMN __schema__.channels_delivery.posted IS 'Posts that show it: their ids, and digests of their content.';
COMMENT ON COLUMN __schema__.channels_delivery.intent IS 'The post that was being created. It may exist in the channel with an unknown id.';
COMMENT ON COLUMN __schema__.channels_delivery.delivered_at IS 'Since when the channel shows the current state of the message. Empty: a delivery is pending.';
COMMENT ON COLUMN __schema__.channels_delivery.created_at IS 'When the message was accepted.';
CREATE TABLE __schema__.channels_slackinstallation (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    workspace character varying(255) NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    bot_user_id character varying(255) NOT NULL,
    scopes text[] DEFAULT '{}'::text[] NOT NULL,
    state text DEFAULT 'connected'::text NOT NULL,
    installed_by text NOT NULL,
    installed_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    ended_because text DEFAULT ''::text NOT NULL,
    agent_id uuid NOT NULL,
    sealed_token text DEFAULT ''::text NOT NULL,
    CONSTRAINT slack_token_while_connected CHECK ((((ended_at IS NULL) AND (state = 'connected'::text) AND (NOT (sealed_token = ''::text))) OR ((sealed_token = ''::text) AND (ended_at IS NOT NULL) AND (state = 'disconnected'::text)))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.channels_slackinstallation FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.channels_slackinstallation IS 'A Slack workspace of the tenant, with its agent and the token of the bot.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.workspace IS 'Slack''s id of the workspace, such as T024BE7LD.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.name IS 'The workspace''s name in Slack.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.bot_user_id IS 'Slack''s user id of the bot, used in mentions.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.scopes IS 'OAuth scopes that Slack granted to the bot.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.state IS 'Events of a disconnected workspace are ignored.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.installed_by IS 'The person who connected it.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.installed_at IS 'When it was connected (last).';
COMMENT ON COLUMN __schema__.channels_slackinstallation.ended_at IS 'When it was disconnected.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.ended_because IS 'Reason of the disconnection.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.agent_id IS 'The agent that answers in this workspace.';
COMMENT ON COLUMN __schema__.channels_slackinstallation.sealed_token IS 'The bot''s token, encrypted; empty once it is disconnected.';
CREATE TABLE __schema__.channels_slackmember (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    slack_id character varying(50) NOT NULL,
    installation_id uuid NOT NULL,
    member_id integer NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.channels_slackmember FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.channels_slackmember IS 'The Slack account of a member of the team, who can answer users from Slack.';
COMMENT ON COLUMN __schema__.channels_slackmember.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.channels_slackmember.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.channels_slackmember.slack_id IS 'Slack''s id of the person: Profile, Copy member ID, such as U024BE7LH.';
COMMENT ON COLUMN __schema__.channels_slackmember.installation_id IS 'The workspace.';
COMMENT ON COLUMN __schema__.channels_slackmember.member_id IS 'Actions of this account have this member''s permissions and are logged under this member''s name.';
CREATE TABLE __schema__.checkpoint_blobs (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    channel text NOT NULL,
    version text NOT NULL,
    type text NOT NULL,
    blob bytea,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.checkpoint_blobs FORCE ROW LEVEL SECURITY;
CREATE TABLE __schema__.checkpoint_migrations (
    v integer NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.checkpoint_migrations FORCE ROW LEVEL SECURITY;
CREATE TABLE __schema__.checkpoint_writes (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    checkpoint_id text NOT NULL,
    task_id text NOT NULL,
    idx integer NOT NULL,
    channel text NOT NULL,
    type text,
    blob bytea NOT NULL,
    task_path text DEFAULT ''::text NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.checkpoint_writes FORCE ROW LEVEL SECURITY;
CREATE TABLE __schema__.checkpoints (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    type text,
    checkpoint jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.checkpoints FORCE ROW LEVEL SECURITY;
CREATE TABLE __schema__.django_admin_log (
    id integer NOT NULL,
    action_time timestamp with time zone NOT NULL,
    object_id text,
    object_repr character varying(200) NOT NULL,
    action_flag smallint NOT NULL,
    change_message text NOT NULL,
    content_type_id integer,
    user_id integer NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT django_admin_log_action_flag_check CHECK ((action_flag >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.django_admin_log FORCE ROW LEVEL SECURITY;
ALTER TABLE __schema__.django_admin_log ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.django_admin_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.django_content_type (
    id integer NOT NULL,
    app_label character varying(100) NOT NULL,
    model character varying(100) NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.django_content_type FORCE ROW LEVEL SECURITY;
ALTER TABLE __schema__.django_content_type ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.django_content_type_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.django_migrations (
    id bigint NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.django_migrations FORCE ROW LEVEL SECURITY;
ALTER TABLE __schema__.django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.django_session (
    session_key character varying(40) NOT NULL,
    session_data text NOT NULL,
    expire_date timestamp with time zone NOT NULL,
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.django_session FORCE ROW LEVEL SECURITY;
CREATE TABLE __schema__.memory_conversation (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    thread_id text NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_conversation FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_conversation IS 'The title and metadata of a conversation, which programs set.';
COMMENT ON COLUMN __schema__.memory_conversation.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_conversation.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.memory_conversation.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.memory_conversation.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_conversation.thread_id IS 'The conversation.';
COMMENT ON COLUMN __schema__.memory_conversation.title IS 'The title.';
COMMENT ON COLUMN __schema__.memory_conversation.metadata IS 'Metadata of programs.';
COMMENT ON COLUMN __schema__.memory_conversation.created_at IS 'When it was first set.';
CREATE TABLE __schema__.memory_conversationembedding (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    message_id uuid,
    piece integer DEFAULT 0 NOT NULL,
    content text NOT NULL,
    role text NOT NULL,
    embedding extensions.vector(384) NOT NULL,
    embedding_model text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    quantized bit(384) GENERATED ALWAYS AS (extensions.binary_quantize(embedding)) STORED,
    CONSTRAINT embedding_role CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text]))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05');
ALTER TABLE ONLY __schema__.memory_conversationembedding ALTER COLUMN embedding SET STORAGE PLAIN;
ALTER TABLE ONLY __schema__.memory_conversationembedding FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_conversationembedding IS 'The vector of one piece of a message, or of a text stored directly. Append-only.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.message_id IS 'The message that contains this piece. Empty: a text stored directly.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.piece IS 'Position of the piece in its message, from 0.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.content IS 'The embedded text.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.role IS 'Role of the speaker.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.embedding IS 'all-MiniLM-L6-v2, 384 dimensions.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.embedding_model IS 'Model and digest of its weights. Only vectors of one model can be compared. Empty: not recorded, treated as the current model.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.created_at IS 'When it was stored.';
COMMENT ON COLUMN __schema__.memory_conversationembedding.quantized IS 'Signs of the vector''s components, for fast comparison.';
CREATE TABLE __schema__.memory_conversationitem (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid NOT NULL,
    number bigint NOT NULL,
    thread_id text NOT NULL,
    item text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    message_id uuid,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_conversationitem FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_conversationitem IS 'A record of a framework''s run: a message, a tool call or its result. Never changed.';
COMMENT ON COLUMN __schema__.memory_conversationitem.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_conversationitem.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.memory_conversationitem.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.memory_conversationitem.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_conversationitem.number IS 'Order of insertion.';
COMMENT ON COLUMN __schema__.memory_conversationitem.thread_id IS 'The conversation.';
COMMENT ON COLUMN __schema__.memory_conversationitem.item IS 'JSON as text, since jsonb cannot store all JSON.';
COMMENT ON COLUMN __schema__.memory_conversationitem.created_at IS 'When it was added.';
COMMENT ON COLUMN __schema__.memory_conversationitem.message_id IS 'The message with its text in the transcript. Empty: it is not remembered.';
ALTER TABLE __schema__.memory_conversationitem ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME __schema__.memory_conversationitem_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.memory_factevent (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    number bigint NOT NULL,
    action text NOT NULL,
    author_kind text NOT NULL,
    author_id text NOT NULL,
    author_name text NOT NULL,
    reason text NOT NULL,
    other_id uuid,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    memory_id uuid NOT NULL,
    CONSTRAINT fact_event_action CHECK ((action = ANY (ARRAY['enter'::text, 'propose'::text, 'confirm'::text, 'change'::text, 'supersede'::text, 'retract'::text, 'reject'::text, 'restore'::text]))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_factevent FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_factevent IS 'A change of a fact''s state, and its author. Never changed, and deleted with the fact.';
COMMENT ON COLUMN __schema__.memory_factevent.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_factevent.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_factevent.number IS 'Order of insertion.';
COMMENT ON COLUMN __schema__.memory_factevent.action IS 'The change.';
COMMENT ON COLUMN __schema__.memory_factevent.author_kind IS 'The kind of the author.';
COMMENT ON COLUMN __schema__.memory_factevent.author_id IS 'Id of the person, the API key or the extraction run.';
COMMENT ON COLUMN __schema__.memory_factevent.author_name IS 'Name of the author.';
COMMENT ON COLUMN __schema__.memory_factevent.reason IS 'The author''s reason.';
COMMENT ON COLUMN __schema__.memory_factevent.other_id IS 'The fact that superseded this one, or was superseded.';
COMMENT ON COLUMN __schema__.memory_factevent.created_at IS 'When it happened.';
COMMENT ON COLUMN __schema__.memory_factevent.memory_id IS 'The fact.';
ALTER TABLE __schema__.memory_factevent ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME __schema__.memory_factevent_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.memory_factevidence (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    start integer NOT NULL,
    "end" integer NOT NULL,
    quote text NOT NULL,
    source_digest bytea NOT NULL,
    run_id uuid,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    memory_id uuid NOT NULL,
    message_id uuid NOT NULL,
    CONSTRAINT fact_evidence_end CHECK (("end" > start)),
    CONSTRAINT memory_factevidence_end_check CHECK (("end" >= 0)),
    CONSTRAINT memory_factevidence_start_check CHECK ((start >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_factevidence FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_factevidence IS 'A quote from a message as the evidence of a fact. Never changed.';
COMMENT ON COLUMN __schema__.memory_factevidence.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_factevidence.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_factevidence.start IS 'First character of the quote in the message.';
COMMENT ON COLUMN __schema__.memory_factevidence."end" IS 'Position after the last character of the quote.';
COMMENT ON COLUMN __schema__.memory_factevidence.quote IS 'The words of the message, verbatim.';
COMMENT ON COLUMN __schema__.memory_factevidence.source_digest IS 'Keyed digest of the message''s user, time and text: copies have the same.';
COMMENT ON COLUMN __schema__.memory_factevidence.run_id IS 'The extraction run that found it.';
COMMENT ON COLUMN __schema__.memory_factevidence.created_at IS 'When it was stored.';
COMMENT ON COLUMN __schema__.memory_factevidence.memory_id IS 'The fact, or the old version that the quote states.';
COMMENT ON COLUMN __schema__.memory_factevidence.message_id IS 'The message.';
CREATE TABLE __schema__.memory_indexedmessage (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    message_number bigint NOT NULL,
    scope_id bigint NOT NULL,
    message_id uuid NOT NULL,
    session bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    subject bigint NOT NULL,
    by_user boolean NOT NULL,
    words integer NOT NULL,
    has_time boolean NOT NULL,
    asks boolean DEFAULT false NOT NULL,
    lexemes integer DEFAULT 0 NOT NULL,
    card bytea GENERATED ALWAYS AS (((((((((int8send(message_number) || uuid_send(message_id)) || int8send(session)) || timestamptz_send(created_at)) || int8send(subject)) || int4send(words)) || boolsend(has_time)) || boolsend(asks)) || boolsend(by_user))) STORED,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05');
ALTER TABLE ONLY __schema__.memory_indexedmessage FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_indexedmessage IS 'The columns of a message that recall scores, without words and vectors. Append-only.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.message_number IS 'Message.number';
COMMENT ON COLUMN __schema__.memory_indexedmessage.scope_id IS 'Scope.id';
COMMENT ON COLUMN __schema__.memory_indexedmessage.message_id IS 'Message.id';
COMMENT ON COLUMN __schema__.memory_indexedmessage.session IS 'Hash of the thread and the day.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.created_at IS 'Time of the message.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.subject IS 'Hash of the first word of the speaker''s name.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.by_user IS 'Written by the user, not by the agent.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.words IS 'Number of its words.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.has_time IS 'Contains an expression of time.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.asks IS 'Contains only questions.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.lexemes IS 'Number of its lexemes.';
COMMENT ON COLUMN __schema__.memory_indexedmessage.card IS 'All columns as one value, so that a whole scope is read as one value.';
CREATE TABLE __schema__.memory_memoryattribute (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id bigint NOT NULL,
    memory_id uuid NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    text text COLLATE pg_catalog."C",
    number double precision,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_memoryattribute FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_memoryattribute IS 'One value of a fact''s metadata, where a b-tree can find it.';
COMMENT ON COLUMN __schema__.memory_memoryattribute.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_memoryattribute.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_memoryattribute.memory_id IS 'The fact.';
COMMENT ON COLUMN __schema__.memory_memoryattribute.key IS 'Path of the value; the keys of inner objects follow a dot.';
COMMENT ON COLUMN __schema__.memory_memoryattribute.kind IS 'text, number, literal (true, false, null), object or list.';
COMMENT ON COLUMN __schema__.memory_memoryattribute.text IS 'A text (a long one abridged), or a literal.';
COMMENT ON COLUMN __schema__.memory_memoryattribute.number IS 'A number.';
ALTER TABLE __schema__.memory_memoryattribute ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.memory_memoryattribute_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.memory_memoryentry (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    memory_id uuid DEFAULT gen_random_uuid() NOT NULL,
    agent_id uuid,
    user_id text,
    external_id text,
    content text NOT NULL,
    content_digest bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    embedding extensions.vector(384) NOT NULL,
    embedding_model text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    valid_from timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    valid_to timestamp with time zone,
    expires_at timestamp with time zone,
    supersedes uuid,
    version_of uuid,
    asserter text DEFAULT ''::text NOT NULL,
    is_multi_valued boolean DEFAULT true NOT NULL,
    kind text DEFAULT 'entered'::text NOT NULL,
    learned_at timestamp with time zone,
    replaces uuid,
    retracted_at timestamp with time zone,
    review_reason text DEFAULT ''::text NOT NULL,
    run_id uuid,
    slot text DEFAULT ''::text NOT NULL,
    state text DEFAULT 'active'::text NOT NULL,
    subject text DEFAULT ''::text NOT NULL,
    valid_from_precision text DEFAULT ''::text NOT NULL,
    valid_to_precision text DEFAULT ''::text NOT NULL,
    value text DEFAULT ''::text NOT NULL,
    CONSTRAINT fact_kind CHECK ((kind = ANY (ARRAY['observed'::text, 'inferred'::text, 'entered'::text]))),
    CONSTRAINT fact_state CHECK ((state = ANY (ARRAY['proposed'::text, 'active'::text, 'superseded'::text, 'retracted'::text, 'rejected'::text]))),
    CONSTRAINT fact_valid_from_before_to CHECK (((valid_to IS NULL) OR (valid_to >= valid_from))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_memoryentry ALTER COLUMN embedding SET STORAGE PLAIN;
ALTER TABLE ONLY __schema__.memory_memoryentry FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_memoryentry IS 'A fact. An update keeps its id, and keeps the earlier state as a version.';
COMMENT ON COLUMN __schema__.memory_memoryentry.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_memoryentry.memory_id IS 'memory id';
COMMENT ON COLUMN __schema__.memory_memoryentry.agent_id IS 'The agent that knows the fact. Empty: all agents.';
COMMENT ON COLUMN __schema__.memory_memoryentry.user_id IS 'The user that the fact is about. Empty: no user.';
COMMENT ON COLUMN __schema__.memory_memoryentry.external_id IS 'The id that the program chose which stored it. Empty: the text identifies it.';
COMMENT ON COLUMN __schema__.memory_memoryentry.content IS 'The fact, in words.';
COMMENT ON COLUMN __schema__.memory_memoryentry.content_digest IS 'content digest';
COMMENT ON COLUMN __schema__.memory_memoryentry.metadata IS 'Metadata, for search filters.';
COMMENT ON COLUMN __schema__.memory_memoryentry.embedding IS 'all-MiniLM-L6-v2, 384 dimensions.';
COMMENT ON COLUMN __schema__.memory_memoryentry.embedding_model IS 'Model and digest of its weights. Only vectors of one model can be compared.';
COMMENT ON COLUMN __schema__.memory_memoryentry.created_at IS 'When it was first stored.';
COMMENT ON COLUMN __schema__.memory_memoryentry.updated_at IS 'When it was changed last.';
COMMENT ON COLUMN __schema__.memory_memoryentry.valid_from IS 'Start of validity.';
COMMENT ON COLUMN __schema__.memory_memoryentry.valid_to IS 'End of validity. Empty: still valid.';
COMMENT ON COLUMN __schema__.memory_memoryentry.expires_at IS 'Searches do not find it from this time on.';
COMMENT ON COLUMN __schema__.memory_memoryentry.supersedes IS 'The version that this one replaced.';
COMMENT ON COLUMN __schema__.memory_memoryentry.version_of IS 'The current entry of this old version.';
COMMENT ON COLUMN __schema__.memory_memoryentry.asserter IS 'Name of the person who stated it.';
COMMENT ON COLUMN __schema__.memory_memoryentry.is_multi_valued IS 'Whether several values of the slot can be valid at once.';
COMMENT ON COLUMN __schema__.memory_memoryentry.kind IS 'Whether it was stated in a message, concluded, or entered.';
COMMENT ON COLUMN __schema__.memory_memoryentry.learned_at IS 'When the earliest message of its evidence was sent. Empty: when it was stored.';
COMMENT ON COLUMN __schema__.memory_memoryentry.replaces IS 'The fact that this one supersedes, or would supersede if it is confirmed.';
COMMENT ON COLUMN __schema__.memory_memoryentry.retracted_at IS 'When it was retracted.';
COMMENT ON COLUMN __schema__.memory_memoryentry.review_reason IS 'Why a person must review it, such as conflict or health.';
COMMENT ON COLUMN __schema__.memory_memoryentry.run_id IS 'The extraction run that proposed it.';
COMMENT ON COLUMN __schema__.memory_memoryentry.slot IS 'The attribute of the subject, in snake_case, such as home_city. Empty: none.';
COMMENT ON COLUMN __schema__.memory_memoryentry.state IS 'Only active facts are given to agents.';
COMMENT ON COLUMN __schema__.memory_memoryentry.subject IS 'The name of the person or thing that the fact is about.';
COMMENT ON COLUMN __schema__.memory_memoryentry.valid_from_precision IS 'How exactly “valid from” is known.';
COMMENT ON COLUMN __schema__.memory_memoryentry.valid_to_precision IS 'How exactly “valid until” is known.';
COMMENT ON COLUMN __schema__.memory_memoryentry.value IS 'The value of the slot, such as Oslo.';
CREATE TABLE __schema__.memory_message (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    number bigint NOT NULL,
    thread_id text NOT NULL,
    channel text NOT NULL,
    role text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    content text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    idempotency_key character varying(255),
    external_id character varying(255),
    in_reply_to_id uuid,
    answered_by_id uuid,
    metadata jsonb,
    usage jsonb,
    finish_reason text DEFAULT ''::text NOT NULL,
    CONSTRAINT message_role CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text]))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_message FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_message IS 'One turn of the transcript, verbatim, written before anything else happens. Append-only.';
COMMENT ON COLUMN __schema__.memory_message.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_message.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.memory_message.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.memory_message.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_message.number IS 'Order of insertion.';
COMMENT ON COLUMN __schema__.memory_message.thread_id IS 'The conversation''s id in the channel. Memory spans all conversations.';
COMMENT ON COLUMN __schema__.memory_message.channel IS 'The source: rest, slack, import, handover …';
COMMENT ON COLUMN __schema__.memory_message.role IS 'Role of the speaker.';
COMMENT ON COLUMN __schema__.memory_message.name IS 'The speaker''s display name.';
COMMENT ON COLUMN __schema__.memory_message.content IS 'The text, verbatim.';
COMMENT ON COLUMN __schema__.memory_message.created_at IS 'Time of the message; for imported turns, the original time.';
COMMENT ON COLUMN __schema__.memory_message.idempotency_key IS 'Deduplication key of the sender, prefixed with the channel.';
COMMENT ON COLUMN __schema__.memory_message.external_id IS 'Id in the system that it was imported from.';
COMMENT ON COLUMN __schema__.memory_message.in_reply_to_id IS 'The message that this one answers. A message gets one reply.';
COMMENT ON COLUMN __schema__.memory_message.answered_by_id IS 'The agent that wrote this reply, which differs from the message''s agent after a handover. Empty: a person, an import, or a reply from before this was recorded.';
COMMENT ON COLUMN __schema__.memory_message.metadata IS 'Metadata from the program, for search filters.';
COMMENT ON COLUMN __schema__.memory_message.usage IS 'Tokens that the language model has reported of a reply.';
COMMENT ON COLUMN __schema__.memory_message.finish_reason IS 'Why the language model ended a reply, by OpenAI''s names: stop, length or content_filter. Empty: no language model wrote it, or it was written before this was recorded.';
ALTER TABLE __schema__.memory_message ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME __schema__.memory_message_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.memory_messageattribute (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    text text COLLATE pg_catalog."C",
    number double precision,
    message_id uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_messageattribute FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_messageattribute IS 'One value of a message''s metadata, where a b-tree can find it. Append-only.';
COMMENT ON COLUMN __schema__.memory_messageattribute.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_messageattribute.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_messageattribute.key IS 'Path of the value; the keys of inner objects follow a dot.';
COMMENT ON COLUMN __schema__.memory_messageattribute.kind IS 'text, number, literal (true, false, null), object or list.';
COMMENT ON COLUMN __schema__.memory_messageattribute.text IS 'A text (a long one abridged), or a literal.';
COMMENT ON COLUMN __schema__.memory_messageattribute.number IS 'A number.';
COMMENT ON COLUMN __schema__.memory_messageattribute.message_id IS 'The message.';
ALTER TABLE __schema__.memory_messageattribute ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.memory_messageattribute_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.memory_pendingembedding (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    message_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_pendingembedding FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_pendingembedding IS 'A message that has no vectors and words yet; deleted when they are written.';
COMMENT ON COLUMN __schema__.memory_pendingembedding.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_pendingembedding.message_id IS 'message';
COMMENT ON COLUMN __schema__.memory_pendingembedding.created_at IS 'When it was accepted.';
CREATE TABLE __schema__.memory_personname (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    folded text NOT NULL,
    first_seen timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_personname FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_personname IS 'A name that messages of a user have had, so that people are found by it. Append-only.';
COMMENT ON COLUMN __schema__.memory_personname.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_personname.user_id IS 'The user whose messages have the name.';
COMMENT ON COLUMN __schema__.memory_personname.name IS 'The name, as the messages have it.';
COMMENT ON COLUMN __schema__.memory_personname.folded IS 'The name without case and accents, to be searched.';
COMMENT ON COLUMN __schema__.memory_personname.first_seen IS 'Time of the first message with this name.';
CREATE TABLE __schema__.memory_posting (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    scope_id bigint NOT NULL,
    lexeme_hash bigint NOT NULL,
    message_number bigint NOT NULL,
    weight real NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05');
ALTER TABLE ONLY __schema__.memory_posting FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_posting IS 'The weight of one lexeme in one message: the lexical index. Append-only.';
COMMENT ON COLUMN __schema__.memory_posting.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_posting.scope_id IS 'Scope.id';
COMMENT ON COLUMN __schema__.memory_posting.lexeme_hash IS '64-bit hash of the lexeme.';
COMMENT ON COLUMN __schema__.memory_posting.message_number IS 'Message.number';
COMMENT ON COLUMN __schema__.memory_posting.weight IS 'Saturated weight of the lexeme in the message.';
CREATE TABLE __schema__.memory_promptsource (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    source_id uuid NOT NULL,
    event_id uuid NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_promptsource FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_promptsource IS 'A message or a fact in a prompt, except those of the user of the reply. Append-only.';
COMMENT ON COLUMN __schema__.memory_promptsource.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_promptsource.source_id IS 'The message or the fact.';
COMMENT ON COLUMN __schema__.memory_promptsource.event_id IS 'The recall event with the prompt.';
CREATE TABLE __schema__.memory_recallevent (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    reply_id uuid,
    sources uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    left_out uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    packed bytea NOT NULL,
    unmatched text[],
    hit_count smallint DEFAULT 0 NOT NULL,
    cut_count smallint DEFAULT 0 NOT NULL,
    injected_count smallint DEFAULT 0 NOT NULL,
    fact_count smallint DEFAULT 0 NOT NULL,
    turn_count smallint DEFAULT 0 NOT NULL,
    abstained boolean NOT NULL,
    embedding_model text NOT NULL,
    milliseconds double precision NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_recallevent FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_recallevent IS 'The recall for a reply and its prompt, as ids, scores and references. Append-only.';
COMMENT ON COLUMN __schema__.memory_recallevent.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_recallevent.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.memory_recallevent.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.memory_recallevent.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_recallevent.reply_id IS 'The reply that was written with these memories.';
COMMENT ON COLUMN __schema__.memory_recallevent.sources IS 'The messages and facts in the prompt, in its order; zero: erased since.';
COMMENT ON COLUMN __schema__.memory_recallevent.left_out IS 'The messages and facts that were found and are not in the prompt.';
COMMENT ON COLUMN __schema__.memory_recallevent.packed IS 'Scores, and the texts of the prompt as references to the sources.';
COMMENT ON COLUMN __schema__.memory_recallevent.unmatched IS 'Texts of the prompt that are no source, such as those of a program. They are erased with any source.';
COMMENT ON COLUMN __schema__.memory_recallevent.hit_count IS 'Number of search results.';
COMMENT ON COLUMN __schema__.memory_recallevent.cut_count IS 'Number of the best search results that were left out.';
COMMENT ON COLUMN __schema__.memory_recallevent.injected_count IS 'Number of memories in the prompt.';
COMMENT ON COLUMN __schema__.memory_recallevent.fact_count IS 'Number of facts in the prompt.';
COMMENT ON COLUMN __schema__.memory_recallevent.turn_count IS 'Number of recent turns in the prompt.';
COMMENT ON COLUMN __schema__.memory_recallevent.abstained IS 'No memory was relevant enough.';
COMMENT ON COLUMN __schema__.memory_recallevent.embedding_model IS 'Model and digest of its weights.';
COMMENT ON COLUMN __schema__.memory_recallevent.milliseconds IS 'Duration of the recall.';
COMMENT ON COLUMN __schema__.memory_recallevent.created_at IS 'When it was stored.';
CREATE TABLE __schema__.memory_recallexclusion (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    start integer,
    "end" integer,
    memory_id uuid,
    echo_of uuid,
    reason text NOT NULL,
    author_kind text NOT NULL,
    author_id text NOT NULL,
    author_name text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    message_id uuid NOT NULL,
    CONSTRAINT memory_recallexclusion_end_check CHECK (("end" >= 0)),
    CONSTRAINT memory_recallexclusion_start_check CHECK ((start >= 0)),
    CONSTRAINT recall_exclusion_end CHECK (((("end" IS NULL) AND (start IS NULL)) OR (("end" > start) AND (start IS NOT NULL)))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_recallexclusion FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_recallexclusion IS 'A message, or some words of it, that recall leaves out until the exclusion is removed.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.start IS 'First character of the excluded words. Empty: the whole message is excluded.';
COMMENT ON COLUMN __schema__.memory_recallexclusion."end" IS 'Position after the last character of the excluded words.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.memory_id IS 'The corrected fact, or its old version. Empty: the message was excluded without a correction.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.echo_of IS 'The exclusion of the message that this reply repeats. Empty: none.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.reason IS 'The author''s reason.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.author_kind IS 'The kind of the author.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.author_id IS 'Id of the person, the API key or the extraction run.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.author_name IS 'Name of the author.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.created_at IS 'When it was excluded.';
COMMENT ON COLUMN __schema__.memory_recallexclusion.message_id IS 'The message.';
CREATE TABLE __schema__.memory_scope (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id bigint NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_scope FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_scope IS 'The integer that identifies an agent and a user in the index of recall. Append-only.';
COMMENT ON COLUMN __schema__.memory_scope.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_scope.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.memory_scope.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.memory_scope.id IS 'Id of the row.';
CREATE TABLE __schema__.memory_windowclear (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id bigint NOT NULL,
    last_number bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.memory_windowclear FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.memory_windowclear IS 'A cleared window. Turns up to this message are not added to it again. Append-only.';
COMMENT ON COLUMN __schema__.memory_windowclear.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.memory_windowclear.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.memory_windowclear.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.memory_windowclear.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.memory_windowclear.last_number IS 'Number of the newest message of the conversation when it was cleared.';
COMMENT ON COLUMN __schema__.memory_windowclear.created_at IS 'When it was cleared.';
ALTER TABLE __schema__.memory_windowclear ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME __schema__.memory_windowclear_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE __schema__.orchestrator_agent (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name character varying(120) NOT NULL,
    system_prompt text DEFAULT ''::text NOT NULL,
    identity text DEFAULT ''::text NOT NULL,
    persona text DEFAULT ''::text NOT NULL,
    model character varying(200) DEFAULT ''::character varying NOT NULL,
    model_tier text DEFAULT 'fast'::text NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    language character varying(2) DEFAULT ''::character varying NOT NULL,
    time_zone character varying(64) DEFAULT ''::character varying NOT NULL,
    recall_mode text DEFAULT 'hybrid'::text NOT NULL,
    recall_top_k smallint,
    recall_gate boolean DEFAULT true NOT NULL,
    recall_open_at double precision,
    recall_keep_at double precision,
    recall_neighbours smallint,
    recall_weights jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    escalate_after_failures smallint,
    escalate_on text[] DEFAULT '{}'::text[] NOT NULL,
    tools text[] DEFAULT '{}'::text[] NOT NULL,
    hands_to uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    hand_over_on jsonb DEFAULT '{}'::jsonb NOT NULL,
    hand_back_on text[] DEFAULT '{}'::text[] NOT NULL,
    language_models text[] DEFAULT '{}'::text[] NOT NULL,
    reranker character varying(120) DEFAULT ''::character varying NOT NULL,
    accepts_client_instructions boolean DEFAULT true NOT NULL,
    max_completion_tokens integer,
    max_tokens_per_day integer,
    conversation_pause_hours integer DEFAULT 12 NOT NULL,
    extraction_batch_size smallint DEFAULT 40 NOT NULL,
    extraction_idle_seconds integer DEFAULT 600 NOT NULL,
    extraction_max_tokens_per_day integer,
    extraction_model character varying(200) DEFAULT ''::character varying NOT NULL,
    extracts_facts boolean DEFAULT false NOT NULL,
    fact_review text DEFAULT 'doubtful'::text NOT NULL,
    fact_review_by_slot jsonb DEFAULT '{}'::jsonb NOT NULL,
    recall_preset text DEFAULT 'balanced'::text NOT NULL,
    CONSTRAINT agent_escalate_after_failures CHECK ((NOT ((escalate_after_failures = 0) AND (escalate_after_failures IS NOT NULL)))),
    CONSTRAINT agent_extraction_batch_size CHECK (((extraction_batch_size >= 1) AND (extraction_batch_size <= 200))),
    CONSTRAINT agent_fact_review CHECK ((fact_review = ANY (ARRAY['none'::text, 'doubtful'::text, 'all'::text]))),
    CONSTRAINT agent_max_completion_tokens CHECK ((NOT ((max_completion_tokens = 0) AND (max_completion_tokens IS NOT NULL)))),
    CONSTRAINT agent_model_tier CHECK ((model_tier = ANY (ARRAY['fast'::text, 'reasoning'::text]))),
    CONSTRAINT agent_name_is_no_id CHECK ((NOT ((name)::text ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'::text))),
    CONSTRAINT agent_recall_mode CHECK ((recall_mode = ANY (ARRAY['hybrid'::text, 'vector'::text]))),
    CONSTRAINT agent_recall_preset CHECK ((recall_preset = ANY (ARRAY['precise'::text, 'balanced'::text, 'thorough'::text]))),
    CONSTRAINT orchestrator_agent_conversation_pause_hours_check CHECK ((conversation_pause_hours >= 0)),
    CONSTRAINT orchestrator_agent_escalate_after_failures_check CHECK ((escalate_after_failures >= 0)),
    CONSTRAINT orchestrator_agent_extraction_batch_size_check CHECK ((extraction_batch_size >= 0)),
    CONSTRAINT orchestrator_agent_extraction_idle_seconds_check CHECK ((extraction_idle_seconds >= 0)),
    CONSTRAINT orchestrator_agent_extraction_max_tokens_per_day_check CHECK ((extraction_max_tokens_per_day >= 0)),
    CONSTRAINT orchestrator_agent_max_completion_tokens_check CHECK ((max_completion_tokens >= 0)),
    CONSTRAINT orchestrator_agent_max_tokens_per_day_check CHECK ((max_tokens_per_day >= 0)),
    CONSTRAINT orchestrator_agent_recall_neighbours_check CHECK ((recall_neighbours >= 0)),
    CONSTRAINT orchestrator_agent_recall_top_k_check CHECK ((recall_top_k >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_agent FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_agent IS 'An AI agent of a tenant: its identity, language model and memory settings.';
COMMENT ON COLUMN __schema__.orchestrator_agent.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_agent.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_agent.name IS 'The name for programs and people. Unique in the tenant, and not a UUID.';
COMMENT ON COLUMN __schema__.orchestrator_agent.system_prompt IS 'The agent''s purpose and instructions. Every prompt begins with them.';
COMMENT ON COLUMN __schema__.orchestrator_agent.identity IS 'The agent''s identity: “You are Ada, the librarian …”';
COMMENT ON COLUMN __schema__.orchestrator_agent.persona IS 'The agent''s style: tone, language, manners.';
COMMENT ON COLUMN __schema__.orchestrator_agent.model IS 'Name of the language model for the deployment''s server, and for language models of the tenant without a name of a model. Blank: the deployment''s model of the tier.';
COMMENT ON COLUMN __schema__.orchestrator_agent.model_tier IS 'fast: short contexts and low cost. reasoning: long contexts.';
COMMENT ON COLUMN __schema__.orchestrator_agent.is_active IS 'An inactive agent accepts no messages; its memory stays.';
COMMENT ON COLUMN __schema__.orchestrator_agent.language IS 'Language in which all Latin words of messages and questions are searched. Blank: that of the user, or else of each text, by its frequent words.';
COMMENT ON COLUMN __schema__.orchestrator_agent.time_zone IS 'Time zone of users without one of their own, such as Europe/Berlin, for times in prompts and the days of messages. Blank: UTC.';
COMMENT ON COLUMN __schema__.orchestrator_agent.recall_mode IS 'How the agent searches memories.';
COMMENT ON COLUMN __schema__.orchestrator_agent.recall_top_k IS 'Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10).';
COMMENT ON COLUMN __schema__.orchestrator_agent.recall_gate IS 'Leave out memories that are probably irrelevant, all of them if necessary.';
COMMENT ON COLUMN __schema__.orchestrator_agent.recall_open_at IS 'Own threshold instead of the preset''s, 0 to 1: no memory is used unless the best one has at least this gate value. Blank: the preset''s.';
COMMENT ON COLUMN __schema__.orchestrator_agent.recall_keep_at IS 'Own threshold instead of the preset''s, 0 to 1: each memory must have at least this gate value. Blank: the preset''s.';
COMMENT ON COLUMN __schema__.orchestrator_agent.recall_neighbours IS 'Number of turns before and after a memory that are included with it, 0 to 10. Blank: as measured (0).';
COMMENT ON COLUMN __schema__.orchestrator_agent.recall_weights IS 'Weights of the ranking that differ from the measured ones, such as {"time": 1}.';
COMMENT ON COLUMN __schema__.orchestrator_agent.created_at IS 'Time of creation.';
COMMENT ON COLUMN __schema__.orchestrator_agent.escalate_after_failures IS 'Number of failed replies in a row in a thread after which a person is called. Blank: never.';
COMMENT ON COLUMN __schema__.orchestrator_agent.escalate_on IS 'Words or phrases in a message that call for a person, in addition to plain requests such as “talk to a human”.';
COMMENT ON COLUMN __schema__.orchestrator_agent.tools IS 'Tools that the agent may use. remember_fact stores a fact about the user, after the user consents.';
COMMENT ON COLUMN __schema__.orchestrator_agent.hands_to IS 'Agents to which the language model may hand a conversation, with the tool hand_to_agent.';
COMMENT ON COLUMN __schema__.orchestrator_agent.hand_over_on IS 'Words or phrases in a message that hand the conversation to another agent, each with that agent''s id: {"invoice": "0b6ef0bd-…"}.';
COMMENT ON COLUMN __schema__.orchestrator_agent.hand_back_on IS 'Words or phrases in a message that return a conversation to the previous agent.';
COMMENT ON COLUMN __schema__.orchestrator_agent.language_models IS 'Names of the tenant''s language models that answer, in this order: the next one is called if one fails. None: the tenant''s default models.';
COMMENT ON COLUMN __schema__.orchestrator_agent.reranker IS 'Name of the tenant''s reranker, which sorts recalled memories. Blank: none.';
COMMENT ON COLUMN __schema__.orchestrator_agent.accepts_client_instructions IS 'Follow the system and developer messages that an application sends through OpenAI''s interface, after the agent''s own instructions. Those of a bound key are never followed.';
COMMENT ON COLUMN __schema__.orchestrator_agent.max_completion_tokens IS 'Maximum number of tokens in one answer of the language model. An application may ask for fewer. Blank: only the model''s own limit.';
COMMENT ON COLUMN __schema__.orchestrator_agent.max_tokens_per_day IS 'After this many tokens of replies in a day (UTC) the agent''s replies fail. Blank: no limit.';
COMMENT ON COLUMN __schema__.orchestrator_agent.conversation_pause_hours IS 'After this many hours without a message, a new conversation begins: earlier turns are recalled, instead of being turns of the prompt.';
COMMENT ON COLUMN __schema__.orchestrator_agent.extraction_batch_size IS 'Maximum number of messages in one request to the language model, 1 to 200. A conversation with this many new messages is processed at once.';
COMMENT ON COLUMN __schema__.orchestrator_agent.extraction_idle_seconds IS 'A conversation is idle after this many seconds without a message.';
COMMENT ON COLUMN __schema__.orchestrator_agent.extraction_max_tokens_per_day IS 'Maximum number of tokens that extraction may use for this agent in a day (UTC). Blank: no limit.';
COMMENT ON COLUMN __schema__.orchestrator_agent.extraction_model IS 'Model that extracts facts. Blank: the agent''s model.';
COMMENT ON COLUMN __schema__.orchestrator_agent.extracts_facts IS 'Extract facts from idle conversations. The deployment must have a language model.';
COMMENT ON COLUMN __schema__.orchestrator_agent.fact_review IS 'Which extracted facts a person confirms before agents use them.';
COMMENT ON COLUMN __schema__.orchestrator_agent.fact_review_by_slot IS 'Different rules for single slots, such as {"diet": "all", "hobby": "none"}.';
COMMENT ON COLUMN __schema__.orchestrator_agent.recall_preset IS 'With the gate: how strict recall is. Choosing a preset clears the agent''s own thresholds.';
CREATE TABLE __schema__.orchestrator_agentversion (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    agent_id uuid NOT NULL,
    number integer NOT NULL,
    settings jsonb NOT NULL,
    changed text[] DEFAULT '{}'::text[] NOT NULL,
    restores integer,
    note text DEFAULT ''::text NOT NULL,
    author text NOT NULL,
    author_name text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT orchestrator_agentversion_number_check CHECK ((number >= 0)),
    CONSTRAINT orchestrator_agentversion_restores_check CHECK ((restores >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_agentversion FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_agentversion IS 'The settings of an agent after a change. Never changed.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.agent_id IS 'The agent.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.number IS '1 for the first version of the agent.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.settings IS 'All settings of the agent, by the names of its columns.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.changed IS 'Names of the settings that differ from the version before.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.restores IS 'Number of the version that this one restores.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.note IS 'The author''s note on the change.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.author IS 'Kind and id of the author, such as person:7; system: for the platform.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.author_name IS 'Name of the author at that time.';
COMMENT ON COLUMN __schema__.orchestrator_agentversion.created_at IS 'When the agent changed.';
CREATE TABLE __schema__.orchestrator_answeroptions (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    message_id uuid NOT NULL,
    options jsonb NOT NULL,
    instructions text[] DEFAULT '{}'::text[] NOT NULL,
    history jsonb,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_answeroptions FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_answeroptions IS 'Options for the answer, given by the program that sent the message; kept until the answer.';
COMMENT ON COLUMN __schema__.orchestrator_answeroptions.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_answeroptions.message_id IS 'The message that is to be answered.';
COMMENT ON COLUMN __schema__.orchestrator_answeroptions.options IS 'By the names of OpenAI''s API: tools, response_format, temperature, max_tokens …';
COMMENT ON COLUMN __schema__.orchestrator_answeroptions.instructions IS 'The program''s system and developer messages, in their order.';
COMMENT ON COLUMN __schema__.orchestrator_answeroptions.history IS 'The turns of the prompt, as the program sent them. Null: those of the window.';
CREATE TABLE __schema__.orchestrator_channelidentity (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    channel text NOT NULL,
    workspace text DEFAULT ''::text NOT NULL,
    native_id text NOT NULL,
    own_id text NOT NULL,
    user_id text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    looked_up_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    linked_at timestamp with time zone,
    linked_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_channelidentity FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_channelidentity IS 'An account of a channel, and the user that owns its memory.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.channel IS 'slack …';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.workspace IS 'The workspace in the channel, if the channel has workspaces.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.native_id IS 'The sender''s id in the channel.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.own_id IS 'The identity''s own user id; no other identity has the same.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.user_id IS 'The user that the identity belongs to.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.name IS 'The sender''s name in the channel.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.looked_up_at IS 'When the channel was last asked for the name.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.created_at IS 'Time of the first message.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.linked_at IS 'When the identity was linked to another user.';
COMMENT ON COLUMN __schema__.orchestrator_channelidentity.linked_by IS 'The person who linked it.';
CREATE TABLE __schema__.orchestrator_dailyactivity (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    day date NOT NULL,
    agent_id uuid,
    channel text DEFAULT ''::text NOT NULL,
    messages integer DEFAULT 0 NOT NULL,
    replies integer DEFAULT 0 NOT NULL,
    from_facts integer DEFAULT 0 NOT NULL,
    from_memories integer DEFAULT 0 NOT NULL,
    from_turns integer DEFAULT 0 NOT NULL,
    from_nothing integer DEFAULT 0 NOT NULL,
    prompt_tokens bigint DEFAULT 0 NOT NULL,
    completion_tokens bigint DEFAULT 0 NOT NULL,
    reply_times integer[] DEFAULT '{}'::integer[] NOT NULL,
    CONSTRAINT orchestrator_dailyactivity_completion_tokens_check CHECK ((completion_tokens >= 0)),
    CONSTRAINT orchestrator_dailyactivity_from_facts_check CHECK ((from_facts >= 0)),
    CONSTRAINT orchestrator_dailyactivity_from_memories_check CHECK ((from_memories >= 0)),
    CONSTRAINT orchestrator_dailyactivity_from_nothing_check CHECK ((from_nothing >= 0)),
    CONSTRAINT orchestrator_dailyactivity_from_turns_check CHECK ((from_turns >= 0)),
    CONSTRAINT orchestrator_dailyactivity_messages_check CHECK ((messages >= 0)),
    CONSTRAINT orchestrator_dailyactivity_prompt_tokens_check CHECK ((prompt_tokens >= 0)),
    CONSTRAINT orchestrator_dailyactivity_replies_check CHECK ((replies >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_dailyactivity FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_dailyactivity IS 'Counts of one ended day (UTC), agent and channel.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.day IS 'The day (UTC).';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.agent_id IS 'The agent.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.channel IS 'The channel.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.messages IS 'Users'' messages.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.replies IS 'Replies of agents that have a recall event.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.from_facts IS 'Replies with facts in their prompt.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.from_memories IS 'Replies with recalled messages and without facts.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.from_turns IS 'Replies with recent turns alone.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.from_nothing IS 'Replies without any of them.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.prompt_tokens IS 'Tokens sent, as the language model reported them.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.completion_tokens IS 'Tokens received, as the language model reported them.';
COMMENT ON COLUMN __schema__.orchestrator_dailyactivity.reply_times IS 'Numbers of replies by their time: activity.py has the limits.';
CREATE TABLE __schema__.orchestrator_dailyusage (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    day date NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    replies bigint DEFAULT 0 NOT NULL,
    memories bigint DEFAULT 0 NOT NULL,
    calls bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    prompt_tokens bigint DEFAULT 0 NOT NULL,
    completion_tokens bigint DEFAULT 0 NOT NULL,
    cost numeric(18,6) DEFAULT 0 NOT NULL,
    CONSTRAINT orchestrator_dailyusage_calls_check CHECK ((calls >= 0)),
    CONSTRAINT orchestrator_dailyusage_completion_tokens_check CHECK ((completion_tokens >= 0)),
    CONSTRAINT orchestrator_dailyusage_failed_check CHECK ((failed >= 0)),
    CONSTRAINT orchestrator_dailyusage_memories_check CHECK ((memories >= 0)),
    CONSTRAINT orchestrator_dailyusage_messages_check CHECK ((messages >= 0)),
    CONSTRAINT orchestrator_dailyusage_prompt_tokens_check CHECK ((prompt_tokens >= 0)),
    CONSTRAINT orchestrator_dailyusage_replies_check CHECK ((replies >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_dailyusage FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_dailyusage IS 'Counts of one day (UTC).';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.day IS 'The day (UTC).';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.messages IS 'Messages of users that were accepted.';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.replies IS 'Replies of agents that were written.';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.memories IS 'Messages, replies, imported turns and facts, together.';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.calls IS 'Calls of language models with a known outcome.';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.failed IS 'Calls of language models that failed.';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.prompt_tokens IS 'Tokens sent.';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.completion_tokens IS 'Tokens received.';
COMMENT ON COLUMN __schema__.orchestrator_dailyusage.cost IS 'Cost, by the prices of the language models at that time.';
CREATE TABLE __schema__.orchestrator_escalation (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    thread_id text NOT NULL,
    channel text NOT NULL,
    message_id uuid,
    opened_by text NOT NULL,
    opened_by_name text DEFAULT ''::text NOT NULL,
    reason text NOT NULL,
    opened_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    resolved_at timestamp with time zone,
    resolved_by text DEFAULT ''::text NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    to_agent_id uuid,
    from_agent_id uuid,
    outcome text DEFAULT ''::text NOT NULL,
    assigned_to text DEFAULT ''::text NOT NULL,
    CONSTRAINT escalation_opened_by CHECK ((opened_by = ANY (ARRAY['user'::text, 'rule'::text, 'agent'::text, 'program'::text, 'person'::text]))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_escalation FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_escalation IS 'A period in which a person or another agent answers in a thread.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.thread_id IS 'The conversation''s id in the channel.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.channel IS 'The channel: rest, slack …';
COMMENT ON COLUMN __schema__.orchestrator_escalation.message_id IS 'The message that caused the escalation. Its reply announces that a person will answer.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.opened_by IS 'What opened the escalation: the user, a rule, an agent, a program or a person.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.opened_by_name IS 'The name of the program or person.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.reason IS 'The reason.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.opened_at IS 'When it was opened.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.resolved_at IS 'When it was resolved; empty while it is open.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.resolved_by IS 'The person who resolved it.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.note IS 'Note on the outcome, for the record.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.to_agent_id IS 'The agent that answers instead; empty if a person answers.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.from_agent_id IS 'The previous agent, which can get the conversation back.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.outcome IS 'How it ended: resolved, handed on, handed back, or a person was requested.';
COMMENT ON COLUMN __schema__.orchestrator_escalation.assigned_to IS 'Username of the colleague to whom it is assigned; empty: unassigned.';
CREATE TABLE __schema__.orchestrator_extractioncursor (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    thread_id text NOT NULL,
    last_number bigint DEFAULT 0 NOT NULL,
    processed_at timestamp with time zone,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_extractioncursor FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_extractioncursor IS 'The last message of a conversation from which facts were extracted.';
COMMENT ON COLUMN __schema__.orchestrator_extractioncursor.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_extractioncursor.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.orchestrator_extractioncursor.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.orchestrator_extractioncursor.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_extractioncursor.thread_id IS 'The conversation.';
COMMENT ON COLUMN __schema__.orchestrator_extractioncursor.last_number IS 'Number of the last message that was processed.';
COMMENT ON COLUMN __schema__.orchestrator_extractioncursor.processed_at IS 'When the last run ended.';
CREATE TABLE __schema__.orchestrator_extractionrun (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    thread_id text NOT NULL,
    state text DEFAULT 'running'::text NOT NULL,
    message_ids uuid[] NOT NULL,
    replay_of uuid,
    requested_by text DEFAULT ''::text NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    endpoint text DEFAULT ''::text NOT NULL,
    response_format text DEFAULT ''::text NOT NULL,
    prompt_digest text DEFAULT ''::text NOT NULL,
    output text DEFAULT ''::text NOT NULL,
    prompt_tokens integer DEFAULT 0 NOT NULL,
    completion_tokens integer DEFAULT 0 NOT NULL,
    cost numeric(12,6) DEFAULT 0 NOT NULL,
    result jsonb DEFAULT '{}'::jsonb NOT NULL,
    candidates jsonb DEFAULT '[]'::jsonb NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT extraction_run_state CHECK ((state = ANY (ARRAY['running'::text, 'preview'::text, 'applied'::text, 'failed'::text, 'rolled_back'::text]))),
    CONSTRAINT orchestrator_extractionrun_completion_tokens_check CHECK ((completion_tokens >= 0)),
    CONSTRAINT orchestrator_extractionrun_prompt_tokens_check CHECK ((prompt_tokens >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_extractionrun FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_extractionrun IS 'One request for the facts of a part of a conversation, with its answer and its result.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.thread_id IS 'The conversation.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.state IS 'A preview changes no facts.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.message_ids IS 'The messages that were processed, in their order.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.replay_of IS 'The run that this one replays.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.requested_by IS 'The person or key that requested it. Empty: the platform.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.model IS 'The language model.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.endpoint IS 'Host and port of the language model''s server.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.response_format IS 'json_schema, json_object or text: what the endpoint supports.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.prompt_digest IS 'SHA-256 of the instructions.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.output IS 'The answer of the model, verbatim.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.prompt_tokens IS 'Tokens sent.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.completion_tokens IS 'Tokens received.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.cost IS 'Cost, by the prices of the language models at that time.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.result IS 'Counts: proposed, active, confirmed, superseded, and refused by reason.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.candidates IS 'Each candidate with its outcome and the fact that it led to.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.error IS 'Why it failed.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.created_at IS 'Time of the first message.';
COMMENT ON COLUMN __schema__.orchestrator_extractionrun.ended_at IS 'When it ended.';
CREATE TABLE __schema__.orchestrator_historyimport (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    file_name text NOT NULL,
    content bytea NOT NULL,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    is_dry_run boolean DEFAULT false NOT NULL,
    requested_by text NOT NULL,
    actor_kind text NOT NULL,
    actor_id text NOT NULL,
    report jsonb,
    finished_at timestamp with time zone,
    error text DEFAULT ''::text NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_historyimport FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_historyimport IS 'A file with history of another system: its options, its preview and its import.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.created_at IS 'When the file was sent.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.file_name IS 'Name of the file.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.content IS 'The file, until it is imported.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.options IS 'How it is read, and who is who in it.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.is_dry_run IS 'Whether nothing is stored.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.requested_by IS 'Name of the person or the API key.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.actor_kind IS 'Kind of the actor.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.actor_id IS 'Id of the actor.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.report IS 'Conversations, authors, and what is left out.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.finished_at IS 'When the preview or the import ended.';
COMMENT ON COLUMN __schema__.orchestrator_historyimport.error IS 'Why it failed.';
CREATE TABLE __schema__.orchestrator_languagemodel (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name character varying(120) NOT NULL,
    kind text DEFAULT 'language_model'::text NOT NULL,
    endpoint character varying(2000) DEFAULT ''::character varying NOT NULL,
    secret_key text DEFAULT ''::text NOT NULL,
    model character varying(200) DEFAULT ''::character varying NOT NULL,
    prompt_price numeric(12,6) DEFAULT 0 NOT NULL,
    completion_price numeric(12,6) DEFAULT 0 NOT NULL,
    timeout_seconds integer,
    max_tokens_per_day integer,
    "position" smallint,
    min_score double precision,
    is_active boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT language_model_kind CHECK (((kind = 'language_model'::text) OR ((kind = 'reranker'::text) AND ("position" IS NULL) AND (NOT ((endpoint)::text = ''::text))))),
    CONSTRAINT language_model_timeout CHECK (((timeout_seconds > 0) OR (timeout_seconds IS NULL))),
    CONSTRAINT orchestrator_languagemodel_max_tokens_per_day_check CHECK ((max_tokens_per_day >= 0)),
    CONSTRAINT orchestrator_languagemodel_position_check CHECK (("position" >= 0)),
    CONSTRAINT orchestrator_languagemodel_timeout_seconds_check CHECK ((timeout_seconds >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_languagemodel FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_languagemodel IS 'A language model of the tenant: its server, key, prices and limits.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.name IS 'The name by which agents refer to it. Unique in the tenant.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.kind IS 'A reranker sorts the memories of agents that name it. Its server is asked at /rerank below the address.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.endpoint IS 'Address of an OpenAI-compatible server, such as https://api.example.com/v1, or of a pool. Blank: the deployment''s server, with its key and its prices.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.secret_key IS 'The key, encrypted.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.model IS 'Name of the model for the server. Blank: the agent''s model, or else its tier.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.prompt_price IS 'Price of a million input tokens.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.completion_price IS 'Price of a million output tokens.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.timeout_seconds IS 'Seconds for an answer, at most the deployment''s LLM_TIMEOUT. A model that has a next one gets at most half of the time that is left. Blank: LLM_TIMEOUT.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.max_tokens_per_day IS 'After this many tokens of a day (UTC) the next model is called. Blank: no limit.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel."position" IS 'Place among the models of agents without own ones, lowest first. Blank: it is only for agents that name it.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.min_score IS 'Of a reranker: memories with a lower score are left out. Blank: none are.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.is_active IS 'Whether it is called.';
COMMENT ON COLUMN __schema__.orchestrator_languagemodel.created_at IS 'Time of creation.';
CREATE TABLE __schema__.orchestrator_modelcall (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    agent_id uuid,
    agent_version integer,
    message_id uuid,
    purpose text NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    language_model text DEFAULT ''::text NOT NULL,
    endpoint text DEFAULT ''::text NOT NULL,
    outcome text DEFAULT ''::text NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    prompt_tokens integer DEFAULT 0 NOT NULL,
    completion_tokens integer DEFAULT 0 NOT NULL,
    prompt_price numeric(12,6) DEFAULT 0 NOT NULL,
    completion_price numeric(12,6) DEFAULT 0 NOT NULL,
    cost numeric(12,6) DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    requests smallint DEFAULT 1 NOT NULL,
    CONSTRAINT model_call_outcome CHECK ((outcome = ANY (ARRAY[''::text, 'done'::text, 'failed'::text]))),
    CONSTRAINT orchestrator_modelcall_agent_version_check CHECK ((agent_version >= 0)),
    CONSTRAINT orchestrator_modelcall_completion_tokens_check CHECK ((completion_tokens >= 0)),
    CONSTRAINT orchestrator_modelcall_prompt_tokens_check CHECK ((prompt_tokens >= 0)),
    CONSTRAINT orchestrator_modelcall_requests_check CHECK ((requests >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_modelcall FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_modelcall IS 'A request to a language model, recorded before it is sent.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.agent_id IS 'The agent.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.agent_version IS 'Number of the agent''s version that answered. Empty: it has none, or no reply was asked for.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.message_id IS 'The message that the call answers. Empty: none, or it was erased.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.purpose IS 'Purpose of the call, such as reply or extraction.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.model IS 'The language model.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.language_model IS 'Name of the tenant''s language model. Empty: the deployment''s.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.endpoint IS 'Host and port of the language model''s server.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.outcome IS 'Empty: the process ended before the answer came.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.error IS 'The reason of a failure.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.prompt_tokens IS 'Tokens sent.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.completion_tokens IS 'Tokens received.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.prompt_price IS 'Price of a million tokens sent.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.completion_price IS 'Price of a million tokens received.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.cost IS 'Cost of the tokens, by these prices.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.created_at IS 'When it was sent.';
COMMENT ON COLUMN __schema__.orchestrator_modelcall.requests IS 'HTTP requests that were sent: a failed one is repeated up to twice.';
CREATE TABLE __schema__.orchestrator_moveofpast (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    from_user text NOT NULL,
    user_id text NOT NULL,
    requested_by text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    moved jsonb DEFAULT '{}'::jsonb NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    done_at timestamp with time zone,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_moveofpast FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_moveofpast IS 'A request to move the memory of one user to another. The owner''s process does it.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.from_user IS 'The user that the messages belonged to.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.user_id IS 'The user that the messages are moved to.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.requested_by IS 'The person who linked the users.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.created_at IS 'When the users were linked.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.moved IS 'How much was moved, by table.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.last_error IS 'Error of the last attempt.';
COMMENT ON COLUMN __schema__.orchestrator_moveofpast.done_at IS 'When it was done.';
CREATE TABLE __schema__.orchestrator_questionanswer (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    agent_id uuid NOT NULL,
    user_id text,
    version integer NOT NULL,
    content text DEFAULT ''::text NOT NULL,
    steps text[] DEFAULT '{}'::text[] NOT NULL,
    problem text DEFAULT ''::text NOT NULL,
    message_ids uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    source_count integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    question_id uuid NOT NULL,
    CONSTRAINT orchestrator_questionanswer_source_count_check CHECK ((source_count >= 0)),
    CONSTRAINT orchestrator_questionanswer_version_check CHECK ((version >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_questionanswer FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_questionanswer IS 'An agent''s answer to a saved question, by one version of the agent.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.agent_id IS 'The agent that answered.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.user_id IS 'The person who asks. Empty: none.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.version IS 'Number of the agent''s version. 0: before its first version.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.content IS 'The answer; may be empty.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.steps IS 'The decision and its reason.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.problem IS 'Why there is no answer.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.message_ids IS 'The messages in the prompt: recalled ones and recent turns.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.source_count IS 'Recalled messages and facts in the prompt.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.created_at IS 'When it was answered.';
COMMENT ON COLUMN __schema__.orchestrator_questionanswer.question_id IS 'The question.';
CREATE TABLE __schema__.orchestrator_savedquestion (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    agent_id uuid NOT NULL,
    user_id text,
    content text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.orchestrator_savedquestion FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_savedquestion IS 'A question that an agent is asked again after each change.';
COMMENT ON COLUMN __schema__.orchestrator_savedquestion.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_savedquestion.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_savedquestion.agent_id IS 'The agent that is asked.';
COMMENT ON COLUMN __schema__.orchestrator_savedquestion.user_id IS 'The person who asks. Empty: none.';
COMMENT ON COLUMN __schema__.orchestrator_savedquestion.content IS 'The message.';
COMMENT ON COLUMN __schema__.orchestrator_savedquestion.created_at IS 'When it was saved.';
CREATE TABLE __schema__.orchestrator_toolcall (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    agent_id uuid NOT NULL,
    user_id text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    thread_id text NOT NULL,
    round smallint NOT NULL,
    "position" smallint NOT NULL,
    call_id text NOT NULL,
    name text NOT NULL,
    arguments jsonb NOT NULL,
    question text DEFAULT ''::text NOT NULL,
    state text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    decided_at timestamp with time zone,
    decided_by text DEFAULT ''::text NOT NULL,
    done_at timestamp with time zone,
    result text DEFAULT ''::text NOT NULL,
    message_id uuid NOT NULL,
    asked_by_id uuid,
    content text DEFAULT ''::text NOT NULL,
    CONSTRAINT orchestrator_toolcall_position_check CHECK (("position" >= 0)),
    CONSTRAINT orchestrator_toolcall_round_check CHECK ((round >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid)),
    CONSTRAINT tool_call_state CHECK ((state = ANY (ARRAY['waiting'::text, 'with_program'::text, 'approved'::text, 'denied'::text, 'expired'::text, 'done'::text, 'failed'::text])))
);
ALTER TABLE ONLY __schema__.orchestrator_toolcall FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.orchestrator_toolcall IS 'A tool call that an agent requested while it answered a message.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.agent_id IS 'The agent that this memory belongs to.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.user_id IS 'The user''s id in the channel, such as a Slack user id.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.thread_id IS 'The conversation of the message.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.round IS 'Index of the model''s answer that requested it, from 0.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall."position" IS 'Index of the call in that answer, from 0.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.call_id IS 'Id of the call, from the language model.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.name IS 'The tool.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.arguments IS 'Arguments of the call, as requested.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.question IS 'The question to the user.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.state IS 'State of the call.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.created_at IS 'When it was requested.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.expires_at IS 'Deadline for the consent or the program''s result.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.decided_at IS 'When it was decided.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.decided_by IS 'The author and the channel of the decision.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.done_at IS 'When it was done, or failed.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.result IS 'The result that the language model received.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.message_id IS 'The message that the agent answers.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.asked_by_id IS 'The agent that requested the call, if the thread was handed to another agent. The call is executed for that agent.';
COMMENT ON COLUMN __schema__.orchestrator_toolcall.content IS 'The agent''s text before the call; with the first call of an answer.';
CREATE TABLE __schema__.outbox_eventdelivery (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    status integer,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    delivered_at timestamp with time zone,
    event_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    CONSTRAINT outbox_eventdelivery_status_check CHECK ((status >= 0)),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.outbox_eventdelivery FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.outbox_eventdelivery IS 'An event for a subscription. Until it is delivered, it has a job with its id.';
COMMENT ON COLUMN __schema__.outbox_eventdelivery.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.outbox_eventdelivery.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.outbox_eventdelivery.status IS 'HTTP status of the last response.';
COMMENT ON COLUMN __schema__.outbox_eventdelivery.created_at IS 'When it was enqueued.';
COMMENT ON COLUMN __schema__.outbox_eventdelivery.delivered_at IS 'When it was sent and accepted.';
COMMENT ON COLUMN __schema__.outbox_eventdelivery.event_id IS 'The event.';
COMMENT ON COLUMN __schema__.outbox_eventdelivery.subscription_id IS 'The webhook, the mail addresses or the Slack channel.';
CREATE TABLE __schema__.outbox_outboxevent (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    number bigint,
    type text NOT NULL,
    subject_id uuid NOT NULL,
    agent_id uuid,
    user_id text DEFAULT ''::text NOT NULL,
    thread_id text DEFAULT ''::text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.outbox_outboxevent FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.outbox_outboxevent IS 'An event, written in the transaction of its change. It has ids, and no content.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.number IS 'Place in the order of events, given when the event is first read.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.type IS 'The type.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.subject_id IS 'Id of the message, escalation, fact …';
COMMENT ON COLUMN __schema__.outbox_outboxevent.agent_id IS 'The agent.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.user_id IS 'The user.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.thread_id IS 'The conversation.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.detail IS 'Id of the message with an answer or a tool call; or name of the quota.';
COMMENT ON COLUMN __schema__.outbox_outboxevent.created_at IS 'When it happened.';
CREATE TABLE __schema__.outbox_subscription (
    tenant_id uuid DEFAULT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    target text DEFAULT 'webhook'::text NOT NULL,
    url character varying(2000) DEFAULT ''::character varying NOT NULL,
    addresses character varying(254)[] DEFAULT '{}'::character varying(254)[] NOT NULL,
    workspace character varying(50) DEFAULT ''::character varying NOT NULL,
    slack_channel character varying(50) DEFAULT ''::character varying NOT NULL,
    types text[] DEFAULT '{}'::text[] NOT NULL,
    includes_content boolean DEFAULT false NOT NULL,
    wait_minutes integer DEFAULT 15 NOT NULL,
    review_threshold integer DEFAULT 20 NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    secret text DEFAULT ''::text NOT NULL,
    previous_secret text DEFAULT ''::text NOT NULL,
    previous_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT outbox_subscription_review_threshold_check CHECK ((review_threshold >= 0)),
    CONSTRAINT outbox_subscription_wait_minutes_check CHECK ((wait_minutes >= 0)),
    CONSTRAINT subscription_limits CHECK ((((wait_minutes >= 1) AND (wait_minutes <= 10080)) AND ((review_threshold >= 1) AND (review_threshold <= 10000)))),
    CONSTRAINT subscription_target CHECK ((((target = 'webhook'::text) AND (NOT ((url)::text = ''::text)) AND (NOT (secret = ''::text))) OR ((
CASE
    WHEN (addresses IS NULL) THEN NULL::integer
    ELSE COALESCE(array_length(addresses, 1), 0)
END >= 1) AND (target = 'mail'::text)) OR ((target = 'slack'::text) AND (NOT ((workspace)::text = ''::text)) AND (NOT ((slack_channel)::text = ''::text))))),
    CONSTRAINT tenant_of_schema CHECK ((tenant_id = '__tenant__'::uuid))
);
ALTER TABLE ONLY __schema__.outbox_subscription FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE __schema__.outbox_subscription IS 'Types of events that are sent to a program, by mail, or to a Slack channel.';
COMMENT ON COLUMN __schema__.outbox_subscription.tenant_id IS 'The tenant whose row this is.';
COMMENT ON COLUMN __schema__.outbox_subscription.id IS 'Id of the row.';
COMMENT ON COLUMN __schema__.outbox_subscription.target IS 'Where events are sent.';
COMMENT ON COLUMN __schema__.outbox_subscription.url IS 'Address of the program. It gets a POST for each event.';
COMMENT ON COLUMN __schema__.outbox_subscription.addresses IS 'Mail addresses, separated by commas. A deactivated member of the team gets no mail.';
COMMENT ON COLUMN __schema__.outbox_subscription.workspace IS 'Slack''s id of a connected workspace.';
COMMENT ON COLUMN __schema__.outbox_subscription.slack_channel IS 'Slack''s id of the channel, such as C024BE7LR. Invite the bot to it.';
COMMENT ON COLUMN __schema__.outbox_subscription.types IS 'Types of events that are sent. None: all.';
COMMENT ON COLUMN __schema__.outbox_subscription.includes_content IS 'Whether texts are sent too: of messages and facts to programs, and the user''s last message to people. Otherwise only ids or a link are.';
COMMENT ON COLUMN __schema__.outbox_subscription.wait_minutes IS 'Maximum wait in minutes: of a message for a person, of a tool call for consent, of an erasure for its end. People are notified of what waits longer.';
COMMENT ON COLUMN __schema__.outbox_subscription.review_threshold IS 'Minimum number of proposed facts, at most one notification a day (UTC).';
COMMENT ON COLUMN __schema__.outbox_subscription.is_active IS 'Whether events are sent.';
COMMENT ON COLUMN __schema__.outbox_subscription.description IS 'What the program does.';
COMMENT ON COLUMN __schema__.outbox_subscription.secret IS 'The secret, encrypted.';
COMMENT ON COLUMN __schema__.outbox_subscription.previous_secret IS 'The secret before the last rotation, encrypted.';
COMMENT ON COLUMN __schema__.outbox_subscription.previous_until IS 'Until then events are signed by the previous secret too.';
COMMENT ON COLUMN __schema__.outbox_subscription.created_at IS 'Time of creation. Earlier events are not sent.';
INSERT INTO __schema__.auth_group VALUES
	(1, 'auditor', '__tenant__'),
	(2, 'curator', '__tenant__'),
	(3, 'admin', '__tenant__');
INSERT INTO __schema__.auth_group_permissions VALUES
	(1, 1, 129, '__tenant__'),
	(2, 1, 259, '__tenant__'),
	(3, 1, 133, '__tenant__'),
	(4, 1, 263, '__tenant__'),
	(5, 1, 137, '__tenant__'),
	(6, 1, 141, '__tenant__'),
	(7, 1, 145, '__tenant__'),
	(8, 1, 149, '__tenant__'),
	(9, 1, 153, '__tenant__'),
	(10, 1, 157, '__tenant__'),
	(11, 1, 161, '__tenant__'),
	(12, 1, 36, '__tenant__'),
	(13, 1, 165, '__tenant__'),
	(14, 1, 40, '__tenant__'),
	(15, 1, 169, '__tenant__'),
	(16, 1, 44, '__tenant__'),
	(17, 1, 173, '__tenant__'),
	(18, 1, 177, '__tenant__'),
	(19, 1, 181, '__tenant__'),
	(20, 1, 56, '__tenant__'),
	(21, 1, 185, '__tenant__'),
	(22, 1, 60, '__tenant__'),
	(23, 1, 189, '__tenant__'),
	(24, 1, 64, '__tenant__'),
	(25, 1, 193, '__tenant__'),
	(26, 1, 68, '__tenant__'),
	(27, 1, 197, '__tenant__'),
	(28, 1, 72, '__tenant__'),
	(29, 1, 201, '__tenant__'),
	(30, 1, 76, '__tenant__'),
	(31, 1, 205, '__tenant__'),
	(32, 1, 80, '__tenant__'),
	(33, 1, 209, '__tenant__'),
	(34, 1, 84, '__tenant__'),
	(35, 1, 213, '__tenant__'),
	(36, 1, 88, '__tenant__'),
	(37, 1, 217, '__tenant__'),
	(38, 1, 92, '__tenant__'),
	(39, 1, 221, '__tenant__'),
	(40, 1, 96, '__tenant__'),
	(41, 1, 225, '__tenant__'),
	(42, 1, 100, '__tenant__'),
	(43, 1, 229, '__tenant__'),
	(44, 1, 104, '__tenant__'),
	(45, 1, 233, '__tenant__'),
	(46, 1, 234, '__tenant__'),
	(47, 1, 235, '__tenant__'),
	(48, 1, 236, '__tenant__'),
	(49, 1, 109, '__tenant__'),
	(50, 1, 239, '__tenant__'),
	(51, 1, 113, '__tenant__'),
	(52, 1, 243, '__tenant__'),
	(53, 1, 117, '__tenant__'),
	(54, 1, 247, '__tenant__'),
	(55, 1, 121, '__tenant__'),
	(56, 1, 251, '__tenant__'),
	(57, 1, 125, '__tenant__'),
	(58, 1, 255, '__tenant__'),
	(59, 2, 129, '__tenant__'),
	(60, 2, 130, '__tenant__'),
	(61, 2, 259, '__tenant__'),
	(62, 2, 132, '__tenant__'),
	(63, 2, 133, '__tenant__'),
	(64, 2, 263, '__tenant__'),
	(65, 2, 137, '__tenant__'),
	(66, 2, 141, '__tenant__'),
	(67, 2, 145, '__tenant__'),
	(68, 2, 146, '__tenant__'),
	(69, 2, 147, '__tenant__'),
	(70, 2, 149, '__tenant__'),
	(71, 2, 153, '__tenant__'),
	(72, 2, 157, '__tenant__'),
	(73, 2, 161, '__tenant__'),
	(74, 2, 36, '__tenant__'),
	(75, 2, 165, '__tenant__'),
	(76, 2, 167, '__tenant__'),
	(77, 2, 40, '__tenant__'),
	(78, 2, 169, '__tenant__'),
	(79, 2, 170, '__tenant__'),
	(80, 2, 171, '__tenant__'),
	(81, 2, 44, '__tenant__'),
	(82, 2, 173, '__tenant__'),
	(83, 2, 177, '__tenant__'),
	(84, 2, 181, '__tenant__'),
	(85, 2, 56, '__tenant__'),
	(86, 2, 185, '__tenant__'),
	(87, 2, 60, '__tenant__'),
	(88, 2, 189, '__tenant__'),
	(89, 2, 64, '__tenant__'),
	(90, 2, 193, '__tenant__'),
	(91, 2, 68, '__tenant__'),
	(92, 2, 197, '__tenant__'),
	(93, 2, 72, '__tenant__'),
	(94, 2, 201, '__tenant__'),
	(95, 2, 76, '__tenant__'),
	(96, 2, 205, '__tenant__'),
	(97, 2, 80, '__tenant__'),
	(98, 2, 209, '__tenant__'),
	(99, 2, 84, '__tenant__'),
	(100, 2, 213, '__tenant__'),
	(101, 2, 88, '__tenant__'),
	(102, 2, 217, '__tenant__'),
	(103, 2, 92, '__tenant__'),
	(104, 2, 221, '__tenant__'),
	(105, 2, 93, '__tenant__'),
	(106, 2, 96, '__tenant__'),
	(107, 2, 225, '__tenant__'),
	(108, 2, 100, '__tenant__'),
	(109, 2, 229, '__tenant__'),
	(110, 2, 101, '__tenant__'),
	(111, 2, 102, '__tenant__'),
	(112, 2, 103, '__tenant__'),
	(113, 2, 233, '__tenant__'),
	(114, 2, 234, '__tenant__'),
	(115, 2, 235, '__tenant__'),
	(116, 2, 236, '__tenant__'),
	(117, 2, 105, '__tenant__'),
	(118, 2, 109, '__tenant__'),
	(119, 2, 239, '__tenant__'),
	(120, 2, 104, '__tenant__'),
	(121, 2, 113, '__tenant__'),
	(122, 2, 243, '__tenant__'),
	(123, 2, 117, '__tenant__'),
	(124, 2, 247, '__tenant__'),
	(125, 2, 121, '__tenant__'),
	(126, 2, 251, '__tenant__'),
	(127, 2, 125, '__tenant__'),
	(128, 2, 255, '__tenant__'),
	(129, 3, 36, '__tenant__'),
	(130, 3, 40, '__tenant__'),
	(131, 3, 41, '__tenant__'),
	(132, 3, 42, '__tenant__'),
	(133, 3, 44, '__tenant__'),
	(134, 3, 53, '__tenant__'),
	(135, 3, 54, '__tenant__'),
	(136, 3, 55, '__tenant__'),
	(137, 3, 56, '__tenant__'),
	(138, 3, 60, '__tenant__'),
	(139, 3, 62, '__tenant__'),
	(140, 3, 64, '__tenant__'),
	(141, 3, 68, '__tenant__'),
	(142, 3, 72, '__tenant__'),
	(143, 3, 74, '__tenant__'),
	(144, 3, 76, '__tenant__'),
	(145, 3, 80, '__tenant__'),
	(146, 3, 84, '__tenant__'),
	(147, 3, 88, '__tenant__'),
	(148, 3, 92, '__tenant__'),
	(149, 3, 93, '__tenant__'),
	(150, 3, 96, '__tenant__'),
	(151, 3, 100, '__tenant__'),
	(152, 3, 101, '__tenant__'),
	(153, 3, 102, '__tenant__'),
	(154, 3, 103, '__tenant__'),
	(155, 3, 104, '__tenant__'),
	(156, 3, 105, '__tenant__'),
	(157, 3, 109, '__tenant__'),
	(158, 3, 113, '__tenant__'),
	(159, 3, 117, '__tenant__'),
	(160, 3, 121, '__tenant__'),
	(161, 3, 125, '__tenant__'),
	(162, 3, 129, '__tenant__'),
	(163, 3, 130, '__tenant__'),
	(164, 3, 132, '__tenant__'),
	(165, 3, 133, '__tenant__'),
	(166, 3, 137, '__tenant__'),
	(167, 3, 138, '__tenant__'),
	(168, 3, 139, '__tenant__'),
	(169, 3, 141, '__tenant__'),
	(170, 3, 143, '__tenant__'),
	(171, 3, 145, '__tenant__'),
	(172, 3, 146, '__tenant__'),
	(173, 3, 147, '__tenant__'),
	(174, 3, 149, '__tenant__'),
	(175, 3, 153, '__tenant__'),
	(176, 3, 157, '__tenant__'),
	(177, 3, 159, '__tenant__'),
	(178, 3, 161, '__tenant__'),
	(179, 3, 165, '__tenant__'),
	(180, 3, 167, '__tenant__'),
	(181, 3, 169, '__tenant__'),
	(182, 3, 170, '__tenant__'),
	(183, 3, 171, '__tenant__'),
	(184, 3, 173, '__tenant__'),
	(185, 3, 177, '__tenant__'),
	(186, 3, 181, '__tenant__'),
	(187, 3, 185, '__tenant__'),
	(188, 3, 189, '__tenant__'),
	(189, 3, 193, '__tenant__'),
	(190, 3, 197, '__tenant__'),
	(191, 3, 198, '__tenant__'),
	(192, 3, 201, '__tenant__'),
	(193, 3, 202, '__tenant__'),
	(194, 3, 203, '__tenant__'),
	(195, 3, 204, '__tenant__'),
	(196, 3, 205, '__tenant__'),
	(197, 3, 206, '__tenant__'),
	(198, 3, 207, '__tenant__'),
	(199, 3, 209, '__tenant__'),
	(200, 3, 213, '__tenant__'),
	(201, 3, 215, '__tenant__'),
	(202, 3, 217, '__tenant__'),
	(203, 3, 218, '__tenant__'),
	(204, 3, 219, '__tenant__'),
	(205, 3, 221, '__tenant__'),
	(206, 3, 223, '__tenant__'),
	(207, 3, 225, '__tenant__'),
	(208, 3, 226, '__tenant__'),
	(209, 3, 227, '__tenant__'),
	(210, 3, 228, '__tenant__'),
	(211, 3, 229, '__tenant__'),
	(212, 3, 233, '__tenant__'),
	(213, 3, 234, '__tenant__'),
	(214, 3, 235, '__tenant__'),
	(215, 3, 236, '__tenant__'),
	(216, 3, 237, '__tenant__'),
	(217, 3, 238, '__tenant__'),
	(218, 3, 239, '__tenant__'),
	(219, 3, 240, '__tenant__'),
	(220, 3, 243, '__tenant__'),
	(221, 3, 244, '__tenant__'),
	(222, 3, 245, '__tenant__'),
	(223, 3, 246, '__tenant__'),
	(224, 3, 247, '__tenant__'),
	(225, 3, 251, '__tenant__'),
	(226, 3, 255, '__tenant__'),
	(227, 3, 259, '__tenant__'),
	(228, 3, 263, '__tenant__');
INSERT INTO __schema__.auth_permission VALUES
	(1, 'Can add tenant', 1, 'add_tenant', '__tenant__'),
	(2, 'Can change tenant', 1, 'change_tenant', '__tenant__'),
	(3, 'Can delete tenant', 1, 'delete_tenant', '__tenant__'),
	(4, 'Can view tenant', 1, 'view_tenant', '__tenant__'),
	(5, 'Can add domain', 2, 'add_domain', '__tenant__'),
	(6, 'Can change domain', 2, 'change_domain', '__tenant__'),
	(7, 'Can delete domain', 2, 'delete_domain', '__tenant__'),
	(8, 'Can view domain', 2, 'view_domain', '__tenant__'),
	(9, 'Can add workspace claim', 3, 'add_workspaceclaim', '__tenant__'),
	(10, 'Can change workspace claim', 3, 'change_workspaceclaim', '__tenant__'),
	(11, 'Can delete workspace claim', 3, 'delete_workspaceclaim', '__tenant__'),
	(12, 'Can view workspace claim', 3, 'view_workspaceclaim', '__tenant__'),
	(13, 'Can add operation', 4, 'add_operatorevent', '__tenant__'),
	(14, 'Can change operation', 4, 'change_operatorevent', '__tenant__'),
	(15, 'Can delete operation', 4, 'delete_operatorevent', '__tenant__'),
	(16, 'Can view operation', 4, 'view_operatorevent', '__tenant__'),
	(17, 'Can add schema state', 5, 'add_schemastate', '__tenant__'),
	(18, 'Can change schema state', 5, 'change_schemastate', '__tenant__'),
	(19, 'Can delete schema state', 5, 'delete_schemastate', '__tenant__'),
	(20, 'Can view schema state', 5, 'view_schemastate', '__tenant__'),
	(21, 'Can add job', 6, 'add_job', '__tenant__'),
	(22, 'Can change job', 6, 'change_job', '__tenant__'),
	(23, 'Can delete job', 6, 'delete_job', '__tenant__'),
	(24, 'Can view job', 6, 'view_job', '__tenant__'),
	(25, 'Can add worker', 7, 'add_worker', '__tenant__'),
	(26, 'Can change worker', 7, 'change_worker', '__tenant__'),
	(27, 'Can delete worker', 7, 'delete_worker', '__tenant__'),
	(28, 'Can view worker', 7, 'view_worker', '__tenant__'),
	(29, 'Can add content type', 8, 'add_contenttype', '__tenant__'),
	(30, 'Can change content type', 8, 'change_contenttype', '__tenant__'),
	(31, 'Can delete content type', 8, 'delete_contenttype', '__tenant__'),
	(32, 'Can view content type', 8, 'view_contenttype', '__tenant__'),
	(33, 'Can add permission', 9, 'add_permission', '__tenant__'),
	(34, 'Can change permission', 9, 'change_permission', '__tenant__'),
	(35, 'Can delete permission', 9, 'delete_permission', '__tenant__'),
	(36, 'Can view permission', 9, 'view_permission', '__tenant__'),
	(37, 'Can add group', 10, 'add_group', '__tenant__'),
	(38, 'Can change group', 10, 'change_group', '__tenant__'),
	(39, 'Can delete group', 10, 'delete_group', '__tenant__'),
	(40, 'Can view group', 10, 'view_group', '__tenant__'),
	(41, 'Can add user', 11, 'add_user', '__tenant__'),
	(42, 'Can change user', 11, 'change_user', '__tenant__'),
	(43, 'Can delete user', 11, 'delete_user', '__tenant__'),
	(44, 'Can view user', 11, 'view_user', '__tenant__'),
	(45, 'Can add session', 12, 'add_session', '__tenant__'),
	(46, 'Can change session', 12, 'change_session', '__tenant__'),
	(47, 'Can delete session', 12, 'delete_session', '__tenant__'),
	(48, 'Can view session', 12, 'view_session', '__tenant__'),
	(49, 'Can add log entry', 13, 'add_logentry', '__tenant__'),
	(50, 'Can change log entry', 13, 'change_logentry', '__tenant__'),
	(51, 'Can delete log entry', 13, 'delete_logentry', '__tenant__'),
	(52, 'Can view log entry', 13, 'view_logentry', '__tenant__'),
	(53, 'Can add subscription', 14, 'add_subscription', '__tenant__'),
	(54, 'Can change subscription', 14, 'change_subscription', '__tenant__'),
	(55, 'Can delete subscription', 14, 'delete_subscription', '__tenant__'),
	(56, 'Can view subscription', 14, 'view_subscription', '__tenant__'),
	(57, 'Can add event', 15, 'add_outboxevent', '__tenant__'),
	(58, 'Can change event', 15, 'change_outboxevent', '__tenant__'),
	(59, 'Can delete event', 15, 'delete_outboxevent', '__tenant__'),
	(60, 'Can view event', 15, 'view_outboxevent', '__tenant__'),
	(61, 'Can add sent event', 16, 'add_eventdelivery', '__tenant__'),
	(62, 'Can change sent event', 16, 'change_eventdelivery', '__tenant__'),
	(63, 'Can delete sent event', 16, 'delete_eventdelivery', '__tenant__'),
	(64, 'Can view sent event', 16, 'view_eventdelivery', '__tenant__'),
	(65, 'Can add message', 17, 'add_message', '__tenant__'),
	(66, 'Can change message', 17, 'change_message', '__tenant__'),
	(67, 'Can delete message', 17, 'delete_message', '__tenant__'),
	(68, 'Can view message', 17, 'view_message', '__tenant__'),
	(69, 'Can add conversation embedding', 18, 'add_conversationembedding', '__tenant__'),
	(70, 'Can change conversation embedding', 18, 'change_conversationembedding', '__tenant__'),
	(71, 'Can delete conversation embedding', 18, 'delete_conversationembedding', '__tenant__'),
	(72, 'Can view conversation embedding', 18, 'view_conversationembedding', '__tenant__'),
	(73, 'Can add pending embedding', 19, 'add_pendingembedding', '__tenant__'),
	(74, 'Can change pending embedding', 19, 'change_pendingembedding', '__tenant__'),
	(75, 'Can delete pending embedding', 19, 'delete_pendingembedding', '__tenant__'),
	(76, 'Can view pending embedding', 19, 'view_pendingembedding', '__tenant__'),
	(77, 'Can add scope', 20, 'add_scope', '__tenant__'),
	(78, 'Can change scope', 20, 'change_scope', '__tenant__'),
	(79, 'Can delete scope', 20, 'delete_scope', '__tenant__'),
	(80, 'Can view scope', 20, 'view_scope', '__tenant__'),
	(81, 'Can add posting', 21, 'add_posting', '__tenant__'),
	(82, 'Can change posting', 21, 'change_posting', '__tenant__'),
	(83, 'Can delete posting', 21, 'delete_posting', '__tenant__'),
	(84, 'Can view posting', 21, 'view_posting', '__tenant__'),
	(85, 'Can add recall event', 22, 'add_recallevent', '__tenant__'),
	(86, 'Can change recall event', 22, 'change_recallevent', '__tenant__'),
	(87, 'Can delete recall event', 22, 'delete_recallevent', '__tenant__'),
	(88, 'Can view recall event', 22, 'view_recallevent', '__tenant__'),
	(89, 'Can add source of a prompt', 23, 'add_promptsource', '__tenant__'),
	(90, 'Can change source of a prompt', 23, 'change_promptsource', '__tenant__'),
	(91, 'Can delete source of a prompt', 23, 'delete_promptsource', '__tenant__'),
	(92, 'Can view source of a prompt', 23, 'view_promptsource', '__tenant__'),
	(93, 'Can add cleared window', 24, 'add_windowclear', '__tenant__'),
	(94, 'Can change cleared window', 24, 'change_windowclear', '__tenant__'),
	(95, 'Can delete cleared window', 24, 'delete_windowclear', '__tenant__'),
	(96, 'Can view cleared window', 24, 'view_windowclear', '__tenant__'),
	(97, 'Can add indexed message', 25, 'add_indexedmessage', '__tenant__'),
	(98, 'Can change indexed message', 25, 'change_indexedmessage', '__tenant__'),
	(99, 'Can delete indexed message', 25, 'delete_indexedmessage', '__tenant__'),
	(100, 'Can view indexed message', 25, 'view_indexedmessage', '__tenant__'),
	(101, 'Can add fact', 26, 'add_memoryentry', '__tenant__'),
	(102, 'Can change fact', 26, 'change_memoryentry', '__tenant__'),
	(103, 'Can delete fact', 26, 'delete_memoryentry', '__tenant__'),
	(104, 'Can view fact', 26, 'view_memoryentry', '__tenant__'),
	(105, 'Can confirm, reject, retract and restore facts', 26, 'review_memoryentry', '__tenant__'),
	(106, 'Can add fact attribute', 27, 'add_memoryattribute', '__tenant__'),
	(107, 'Can change fact attribute', 27, 'change_memoryattribute', '__tenant__'),
	(108, 'Can delete fact attribute', 27, 'delete_memoryattribute', '__tenant__'),
	(109, 'Can view fact attribute', 27, 'view_memoryattribute', '__tenant__'),
	(110, 'Can add message attribute', 28, 'add_messageattribute', '__tenant__'),
	(111, 'Can change message attribute', 28, 'change_messageattribute', '__tenant__'),
	(112, 'Can delete message attribute', 28, 'delete_messageattribute', '__tenant__'),
	(113, 'Can view message attribute', 28, 'view_messageattribute', '__tenant__'),
	(114, 'Can add conversation', 29, 'add_conversation', '__tenant__'),
	(115, 'Can change conversation', 29, 'change_conversation', '__tenant__'),
	(116, 'Can delete conversation', 29, 'delete_conversation', '__tenant__'),
	(117, 'Can view conversation', 29, 'view_conversation', '__tenant__'),
	(118, 'Can add conversation item', 30, 'add_conversationitem', '__tenant__'),
	(119, 'Can change conversation item', 30, 'change_conversationitem', '__tenant__'),
	(120, 'Can delete conversation item', 30, 'delete_conversationitem', '__tenant__'),
	(121, 'Can view conversation item', 30, 'view_conversationitem', '__tenant__'),
	(122, 'Can add event of a fact', 31, 'add_factevent', '__tenant__'),
	(123, 'Can change event of a fact', 31, 'change_factevent', '__tenant__'),
	(124, 'Can delete event of a fact', 31, 'delete_factevent', '__tenant__'),
	(125, 'Can view event of a fact', 31, 'view_factevent', '__tenant__'),
	(126, 'Can add evidence of a fact', 32, 'add_factevidence', '__tenant__'),
	(127, 'Can change evidence of a fact', 32, 'change_factevidence', '__tenant__'),
	(128, 'Can delete evidence of a fact', 32, 'delete_factevidence', '__tenant__'),
	(129, 'Can view evidence of a fact', 32, 'view_factevidence', '__tenant__'),
	(130, 'Can add recall exclusion', 33, 'add_recallexclusion', '__tenant__'),
	(131, 'Can change recall exclusion', 33, 'change_recallexclusion', '__tenant__'),
	(132, 'Can delete recall exclusion', 33, 'delete_recallexclusion', '__tenant__'),
	(133, 'Can view recall exclusion', 33, 'view_recallexclusion', '__tenant__'),
	(134, 'Can add name of a person', 34, 'add_personname', '__tenant__'),
	(135, 'Can change name of a person', 34, 'change_personname', '__tenant__'),
	(136, 'Can delete name of a person', 34, 'delete_personname', '__tenant__'),
	(137, 'Can view name of a person', 34, 'view_personname', '__tenant__'),
	(138, 'Can add agent', 35, 'add_agent', '__tenant__'),
	(139, 'Can change agent', 35, 'change_agent', '__tenant__'),
	(140, 'Can delete agent', 35, 'delete_agent', '__tenant__'),
	(141, 'Can view agent', 35, 'view_agent', '__tenant__'),
	(142, 'Can add identity', 36, 'add_channelidentity', '__tenant__'),
	(143, 'Can change identity', 36, 'change_channelidentity', '__tenant__'),
	(144, 'Can delete identity', 36, 'delete_channelidentity', '__tenant__'),
	(145, 'Can view identity', 36, 'view_channelidentity', '__tenant__'),
	(146, 'Can add escalation', 37, 'add_escalation', '__tenant__'),
	(147, 'Can change escalation', 37, 'change_escalation', '__tenant__'),
	(148, 'Can delete escalation', 37, 'delete_escalation', '__tenant__'),
	(149, 'Can view escalation', 37, 'view_escalation', '__tenant__'),
	(150, 'Can add tool call', 38, 'add_toolcall', '__tenant__'),
	(151, 'Can change tool call', 38, 'change_toolcall', '__tenant__'),
	(152, 'Can delete tool call', 38, 'delete_toolcall', '__tenant__'),
	(153, 'Can view tool call', 38, 'view_toolcall', '__tenant__'),
	(154, 'Can add history merge', 39, 'add_historymerge', '__tenant__'),
	(155, 'Can change history merge', 39, 'change_historymerge', '__tenant__'),
	(156, 'Can delete history merge', 39, 'delete_historymerge', '__tenant__'),
	(157, 'Can view history merge', 39, 'view_historymerge', '__tenant__'),
	(158, 'Can add pending reply', 40, 'add_pendingreply', '__tenant__'),
	(159, 'Can change pending reply', 40, 'change_pendingreply', '__tenant__'),
	(160, 'Can delete pending reply', 40, 'delete_pendingreply', '__tenant__'),
	(161, 'Can view pending reply', 40, 'view_pendingreply', '__tenant__'),
	(162, 'Can add answer options', 41, 'add_answeroptions', '__tenant__'),
	(163, 'Can change answer options', 41, 'change_answeroptions', '__tenant__'),
	(164, 'Can delete answer options', 41, 'delete_answeroptions', '__tenant__'),
	(165, 'Can view answer options', 41, 'view_answeroptions', '__tenant__'),
	(166, 'Can add extraction', 42, 'add_extractioncursor', '__tenant__'),
	(167, 'Can change extraction', 42, 'change_extractioncursor', '__tenant__'),
	(168, 'Can delete extraction', 42, 'delete_extractioncursor', '__tenant__'),
	(169, 'Can view extraction', 42, 'view_extractioncursor', '__tenant__'),
	(170, 'Can add extraction run', 43, 'add_extractionrun', '__tenant__'),
	(171, 'Can change extraction run', 43, 'change_extractionrun', '__tenant__'),
	(172, 'Can delete extraction run', 43, 'delete_extractionrun', '__tenant__'),
	(173, 'Can view extraction run', 43, 'view_extractionrun', '__tenant__'),
	(174, 'Can add call of a language model', 44, 'add_modelcall', '__tenant__'),
	(175, 'Can change call of a language model', 44, 'change_modelcall', '__tenant__'),
	(176, 'Can delete call of a language model', 44, 'delete_modelcall', '__tenant__'),
	(177, 'Can view call of a language model', 44, 'view_modelcall', '__tenant__'),
	(178, 'Can add usage by day', 45, 'add_dailyusage', '__tenant__'),
	(179, 'Can change usage by day', 45, 'change_dailyusage', '__tenant__'),
	(180, 'Can delete usage by day', 45, 'delete_dailyusage', '__tenant__'),
	(181, 'Can view usage by day', 45, 'view_dailyusage', '__tenant__'),
	(182, 'Can add daily activity', 46, 'add_dailyactivity', '__tenant__'),
	(183, 'Can change daily activity', 46, 'change_dailyactivity', '__tenant__'),
	(184, 'Can delete daily activity', 46, 'delete_dailyactivity', '__tenant__'),
	(185, 'Can view daily activity', 46, 'view_dailyactivity', '__tenant__'),
	(186, 'Can add version of an agent', 47, 'add_agentversion', '__tenant__'),
	(187, 'Can change version of an agent', 47, 'change_agentversion', '__tenant__'),
	(188, 'Can delete version of an agent', 47, 'delete_agentversion', '__tenant__'),
	(189, 'Can view version of an agent', 47, 'view_agentversion', '__tenant__'),
	(190, 'Can add saved question', 48, 'add_savedquestion', '__tenant__'),
	(191, 'Can change saved question', 48, 'change_savedquestion', '__tenant__'),
	(192, 'Can delete saved question', 48, 'delete_savedquestion', '__tenant__'),
	(193, 'Can view saved question', 48, 'view_savedquestion', '__tenant__'),
	(194, 'Can add answer to a saved question', 49, 'add_questionanswer', '__tenant__'),
	(195, 'Can change answer to a saved question', 49, 'change_questionanswer', '__tenant__'),
	(196, 'Can delete answer to a saved question', 49, 'delete_questionanswer', '__tenant__'),
	(197, 'Can view answer to a saved question', 49, 'view_questionanswer', '__tenant__'),
	(198, 'Can add history import', 50, 'add_historyimport', '__tenant__'),
	(199, 'Can change history import', 50, 'change_historyimport', '__tenant__'),
	(200, 'Can delete history import', 50, 'delete_historyimport', '__tenant__'),
	(201, 'Can view history import', 50, 'view_historyimport', '__tenant__'),
	(202, 'Can add language model', 51, 'add_languagemodel', '__tenant__'),
	(203, 'Can change language model', 51, 'change_languagemodel', '__tenant__'),
	(204, 'Can delete language model', 51, 'delete_languagemodel', '__tenant__'),
	(205, 'Can view language model', 51, 'view_languagemodel', '__tenant__'),
	(206, 'Can add API key', 52, 'add_apikey', '__tenant__'),
	(207, 'Can change API key', 52, 'change_apikey', '__tenant__'),
	(208, 'Can delete API key', 52, 'delete_apikey', '__tenant__'),
	(209, 'Can view API key', 52, 'view_apikey', '__tenant__'),
	(210, 'Can add idempotency record', 53, 'add_idempotencyrecord', '__tenant__'),
	(211, 'Can change idempotency record', 53, 'change_idempotencyrecord', '__tenant__'),
	(212, 'Can delete idempotency record', 53, 'delete_idempotencyrecord', '__tenant__'),
	(213, 'Can view idempotency record', 53, 'view_idempotencyrecord', '__tenant__'),
	(214, 'Can add delivery', 54, 'add_delivery', '__tenant__'),
	(215, 'Can change delivery', 54, 'change_delivery', '__tenant__'),
	(216, 'Can delete delivery', 54, 'delete_delivery', '__tenant__'),
	(217, 'Can view delivery', 54, 'view_delivery', '__tenant__'),
	(218, 'Can add Slack workspace', 55, 'add_slackinstallation', '__tenant__'),
	(219, 'Can change Slack workspace', 55, 'change_slackinstallation', '__tenant__'),
	(220, 'Can delete Slack workspace', 55, 'delete_slackinstallation', '__tenant__'),
	(221, 'Can view Slack workspace', 55, 'view_slackinstallation', '__tenant__'),
	(222, 'Can add arrival', 56, 'add_arrival', '__tenant__'),
	(223, 'Can change arrival', 56, 'change_arrival', '__tenant__'),
	(224, 'Can delete arrival', 56, 'delete_arrival', '__tenant__'),
	(225, 'Can view arrival', 56, 'view_arrival', '__tenant__'),
	(226, 'Can add Slack account of the team', 57, 'add_slackmember', '__tenant__'),
	(227, 'Can change Slack account of the team', 57, 'change_slackmember', '__tenant__'),
	(228, 'Can delete Slack account of the team', 57, 'delete_slackmember', '__tenant__'),
	(229, 'Can view Slack account of the team', 57, 'view_slackmember', '__tenant__'),
	(230, 'Can add access', 58, 'add_accessevent', '__tenant__'),
	(231, 'Can change access', 58, 'change_accessevent', '__tenant__'),
	(232, 'Can delete access', 58, 'delete_accessevent', '__tenant__'),
	(233, 'Can view access', 58, 'view_accessevent', '__tenant__'),
	(234, 'Can search memories as an agent would', 58, 'recall_memories', '__tenant__'),
	(235, 'Can search the messages of all people', 58, 'search_everyone', '__tenant__'),
	(236, 'Can export all data of a person', 58, 'export_person', '__tenant__'),
	(237, 'Can try an agent without storing anything', 58, 'try_agent', '__tenant__'),
	(238, 'Can clear sessions of graphs', 58, 'clear_session', '__tenant__'),
	(239, 'Can export the rows of lists as CSV', 58, 'export_list', '__tenant__'),
	(240, 'Can add erasure request', 59, 'add_erasurerequest', '__tenant__'),
	(241, 'Can change erasure request', 59, 'change_erasurerequest', '__tenant__'),
	(242, 'Can delete erasure request', 59, 'delete_erasurerequest', '__tenant__'),
	(243, 'Can view erasure request', 59, 'view_erasurerequest', '__tenant__'),
	(244, 'Can add retention rule', 60, 'add_retentionrule', '__tenant__'),
	(245, 'Can change retention rule', 60, 'change_retentionrule', '__tenant__'),
	(246, 'Can delete retention rule', 60, 'delete_retentionrule', '__tenant__'),
	(247, 'Can view retention rule', 60, 'view_retentionrule', '__tenant__'),
	(248, 'Can add erasure of messages', 61, 'add_messageerasure', '__tenant__'),
	(249, 'Can change erasure of messages', 61, 'change_messageerasure', '__tenant__'),
	(250, 'Can delete erasure of messages', 61, 'delete_messageerasure', '__tenant__'),
	(251, 'Can view erasure of messages', 61, 'view_messageerasure', '__tenant__'),
	(252, 'Can add person', 62, 'add_person', '__tenant__'),
	(253, 'Can change person', 62, 'change_person', '__tenant__'),
	(254, 'Can delete person', 62, 'delete_person', '__tenant__'),
	(255, 'Can view person', 62, 'view_person', '__tenant__'),
	(256, 'Can add export', 63, 'add_listexport', '__tenant__'),
	(257, 'Can change export', 63, 'change_listexport', '__tenant__'),
	(258, 'Can delete export', 63, 'delete_listexport', '__tenant__'),
	(259, 'Can view export', 63, 'view_listexport', '__tenant__'),
	(260, 'Can add part of an export', 64, 'add_listexportpart', '__tenant__'),
	(261, 'Can change part of an export', 64, 'change_listexportpart', '__tenant__'),
	(262, 'Can delete part of an export', 64, 'delete_listexportpart', '__tenant__'),
	(263, 'Can view part of an export', 64, 'view_listexportpart', '__tenant__');
INSERT INTO __schema__.checkpoint_migrations VALUES
	(0, '__tenant__'),
	(1, '__tenant__'),
	(2, '__tenant__'),
	(3, '__tenant__'),
	(4, '__tenant__'),
	(5, '__tenant__'),
	(6, '__tenant__'),
	(7, '__tenant__'),
	(8, '__tenant__'),
	(9, '__tenant__');
INSERT INTO __schema__.django_content_type VALUES
	(1, 'tenants', 'tenant', '__tenant__'),
	(2, 'tenants', 'domain', '__tenant__'),
	(3, 'tenants', 'workspaceclaim', '__tenant__'),
	(4, 'tenants', 'operatorevent', '__tenant__'),
	(5, 'tenants', 'schemastate', '__tenant__'),
	(6, 'tenants', 'job', '__tenant__'),
	(7, 'tenants', 'worker', '__tenant__'),
	(8, 'contenttypes', 'contenttype', '__tenant__'),
	(9, 'auth', 'permission', '__tenant__'),
	(10, 'auth', 'group', '__tenant__'),
	(11, 'auth', 'user', '__tenant__'),
	(12, 'sessions', 'session', '__tenant__'),
	(13, 'admin', 'logentry', '__tenant__'),
	(14, 'outbox', 'subscription', '__tenant__'),
	(15, 'outbox', 'outboxevent', '__tenant__'),
	(16, 'outbox', 'eventdelivery', '__tenant__'),
	(17, 'memory', 'message', '__tenant__'),
	(18, 'memory', 'conversationembedding', '__tenant__'),
	(19, 'memory', 'pendingembedding', '__tenant__'),
	(20, 'memory', 'scope', '__tenant__'),
	(21, 'memory', 'posting', '__tenant__'),
	(22, 'memory', 'recallevent', '__tenant__'),
	(23, 'memory', 'promptsource', '__tenant__'),
	(24, 'memory', 'windowclear', '__tenant__'),
	(25, 'memory', 'indexedmessage', '__tenant__'),
	(26, 'memory', 'memoryentry', '__tenant__'),
	(27, 'memory', 'memoryattribute', '__tenant__'),
	(28, 'memory', 'messageattribute', '__tenant__'),
	(29, 'memory', 'conversation', '__tenant__'),
	(30, 'memory', 'conversationitem', '__tenant__'),
	(31, 'memory', 'factevent', '__tenant__'),
	(32, 'memory', 'factevidence', '__tenant__'),
	(33, 'memory', 'recallexclusion', '__tenant__'),
	(34, 'memory', 'personname', '__tenant__'),
	(35, 'orchestrator', 'agent', '__tenant__'),
	(36, 'orchestrator', 'channelidentity', '__tenant__'),
	(37, 'orchestrator', 'escalation', '__tenant__'),
	(38, 'orchestrator', 'toolcall', '__tenant__'),
	(39, 'orchestrator', 'historymerge', '__tenant__'),
	(40, 'orchestrator', 'pendingreply', '__tenant__'),
	(41, 'orchestrator', 'answeroptions', '__tenant__'),
	(42, 'orchestrator', 'extractioncursor', '__tenant__'),
	(43, 'orchestrator', 'extractionrun', '__tenant__'),
	(44, 'orchestrator', 'modelcall', '__tenant__'),
	(45, 'orchestrator', 'dailyusage', '__tenant__'),
	(46, 'orchestrator', 'dailyactivity', '__tenant__'),
	(47, 'orchestrator', 'agentversion', '__tenant__'),
	(48, 'orchestrator', 'savedquestion', '__tenant__'),
	(49, 'orchestrator', 'questionanswer', '__tenant__'),
	(50, 'orchestrator', 'historyimport', '__tenant__'),
	(51, 'orchestrator', 'languagemodel', '__tenant__'),
	(52, 'api', 'apikey', '__tenant__'),
	(53, 'api', 'idempotencyrecord', '__tenant__'),
	(54, 'channels', 'delivery', '__tenant__'),
	(55, 'channels', 'slackinstallation', '__tenant__'),
	(56, 'channels', 'arrival', '__tenant__'),
	(57, 'channels', 'slackmember', '__tenant__'),
	(58, 'audit', 'accessevent', '__tenant__'),
	(59, 'audit', 'erasurerequest', '__tenant__'),
	(60, 'audit', 'retentionrule', '__tenant__'),
	(61, 'audit', 'messageerasure', '__tenant__'),
	(62, 'audit', 'person', '__tenant__'),
	(63, 'audit', 'listexport', '__tenant__'),
	(64, 'audit', 'listexportpart', '__tenant__');
INSERT INTO __schema__.django_migrations VALUES
	(1, 'contenttypes', '0001_initial', now(), '__tenant__'),
	(2, 'auth', '0001_initial', now(), '__tenant__'),
	(3, 'admin', '0001_initial', now(), '__tenant__'),
	(4, 'admin', '0002_logentry_remove_auto_add', now(), '__tenant__'),
	(5, 'admin', '0003_logentry_add_action_flag_choices', now(), '__tenant__'),
	(6, 'sessions', '0001_initial', now(), '__tenant__'),
	(7, 'contenttypes', '0002_remove_content_type_name', now(), '__tenant__'),
	(8, 'auth', '0002_alter_permission_name_max_length', now(), '__tenant__'),
	(9, 'auth', '0003_alter_user_email_max_length', now(), '__tenant__'),
	(10, 'auth', '0004_alter_user_username_opts', now(), '__tenant__'),
	(11, 'auth', '0005_alter_user_last_login_null', now(), '__tenant__'),
	(12, 'auth', '0006_require_contenttypes_0002', now(), '__tenant__'),
	(13, 'auth', '0007_alter_validators_add_error_messages', now(), '__tenant__'),
	(14, 'auth', '0008_alter_user_username_max_length', now(), '__tenant__'),
	(15, 'auth', '0009_alter_user_last_name_max_length', now(), '__tenant__'),
	(16, 'auth', '0010_alter_group_name_max_length', now(), '__tenant__'),
	(17, 'auth', '0011_update_proxy_permissions', now(), '__tenant__'),
	(18, 'auth', '0012_alter_user_first_name_max_length', now(), '__tenant__'),
	(19, 'tenants', '0001_initial', now(), '__tenant__'),
	(20, 'memory', '0001_initial', now(), '__tenant__'),
	(21, 'orchestrator', '0001_initial', now(), '__tenant__'),
	(22, 'api', '0001_initial', now(), '__tenant__'),
	(23, 'audit', '0001_initial', now(), '__tenant__'),
	(24, 'channels', '0001_initial', now(), '__tenant__'),
	(25, 'isolation', '0001_initial', now(), '__tenant__'),
	(26, 'outbox', '0001_initial', now(), '__tenant__');
SELECT pg_catalog.setval('__schema__.audit_accessevent_id_seq', 1, false);
SELECT pg_catalog.setval('__schema__.audit_listexportpart_id_seq', 1, false);
SELECT pg_catalog.setval('__schema__.auth_group_id_seq', 3, true);
SELECT pg_catalog.setval('__schema__.auth_group_permissions_id_seq', 228, true);
SELECT pg_catalog.setval('__schema__.auth_permission_id_seq', 263, true);
SELECT pg_catalog.setval('__schema__.auth_user_groups_id_seq', 1, false);
SELECT pg_catalog.setval('__schema__.auth_user_id_seq', 1, false);
SELECT pg_catalog.setval('__schema__.auth_user_user_permissions_id_seq', 1, false);
SELECT pg_catalog.setval('__schema__.django_admin_log_id_seq', 1, false);
SELECT pg_catalog.setval('__schema__.django_content_type_id_seq', 64, true);
SELECT pg_catalog.setval('__schema__.django_migrations_id_seq', 26, true);
SELECT pg_catalog.setval('__schema__.memory_conversationitem_number_seq', 1, false);
SELECT pg_catalog.setval('__schema__.memory_factevent_number_seq', 1, false);
SELECT pg_catalog.setval('__schema__.memory_memoryattribute_id_seq', 1, false);
SELECT pg_catalog.setval('__schema__.memory_message_number_seq', 1, false);
SELECT pg_catalog.setval('__schema__.memory_messageattribute_id_seq', 1, false);
SELECT pg_catalog.setval('__schema__.memory_windowclear_id_seq', 1, false);
ALTER TABLE ONLY __schema__.orchestrator_agent
    ADD CONSTRAINT agent_name UNIQUE (name);
ALTER TABLE ONLY __schema__.orchestrator_agentversion
    ADD CONSTRAINT agent_version_number UNIQUE (agent_id, number);
ALTER TABLE ONLY __schema__.api_apikey
    ADD CONSTRAINT api_apikey_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.api_creation
    ADD CONSTRAINT api_creation_pkey PRIMARY KEY (operation, key);
ALTER TABLE ONLY __schema__.api_apikey
    ADD CONSTRAINT api_key_prefix UNIQUE (prefix);
ALTER TABLE ONLY __schema__.channels_arrival
    ADD CONSTRAINT arrival_key UNIQUE (key);
ALTER TABLE ONLY __schema__.audit_accessevent
    ADD CONSTRAINT audit_accessevent_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.audit_erasurerequest
    ADD CONSTRAINT audit_erasurerequest_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.audit_listexport
    ADD CONSTRAINT audit_listexport_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.audit_listexportpart
    ADD CONSTRAINT audit_listexportpart_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.audit_messageerasure
    ADD CONSTRAINT audit_messageerasure_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.audit_person
    ADD CONSTRAINT audit_person_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY __schema__.audit_person
    ADD CONSTRAINT audit_person_pseudonym_key UNIQUE (pseudonym);
ALTER TABLE ONLY __schema__.audit_retentionrule
    ADD CONSTRAINT audit_retentionrule_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.auth_group
    ADD CONSTRAINT auth_group_name_key UNIQUE (name);
ALTER TABLE ONLY __schema__.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_permission_id_0cd325b0_uniq UNIQUE (group_id, permission_id);
ALTER TABLE ONLY __schema__.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.auth_group
    ADD CONSTRAINT auth_group_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_codename_01ab375a_uniq UNIQUE (content_type_id, codename);
ALTER TABLE ONLY __schema__.auth_permission
    ADD CONSTRAINT auth_permission_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.auth_user_groups
    ADD CONSTRAINT auth_user_groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_group_id_94350c0c_uniq UNIQUE (user_id, group_id);
ALTER TABLE ONLY __schema__.auth_user
    ADD CONSTRAINT auth_user_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_permission_id_14a6b632_uniq UNIQUE (user_id, permission_id);
ALTER TABLE ONLY __schema__.auth_user
    ADD CONSTRAINT auth_user_username_key UNIQUE (username);
ALTER TABLE ONLY __schema__.channels_arrival
    ADD CONSTRAINT channels_arrival_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.channels_delivery
    ADD CONSTRAINT channels_delivery_pkey PRIMARY KEY (message_id);
ALTER TABLE ONLY __schema__.channels_slackinstallation
    ADD CONSTRAINT channels_slackinstallation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.channels_slackmember
    ADD CONSTRAINT channels_slackmember_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.checkpoint_blobs
    ADD CONSTRAINT checkpoint_blobs_pkey PRIMARY KEY (thread_id, checkpoint_ns, channel, version);
ALTER TABLE ONLY __schema__.checkpoint_migrations
    ADD CONSTRAINT checkpoint_migrations_pkey PRIMARY KEY (v);
ALTER TABLE ONLY __schema__.checkpoint_writes
    ADD CONSTRAINT checkpoint_writes_pkey PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx);
ALTER TABLE ONLY __schema__.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id);
ALTER TABLE ONLY __schema__.memory_conversation
    ADD CONSTRAINT conversation_thread UNIQUE (agent_id, user_id, thread_id);
ALTER TABLE ONLY __schema__.orchestrator_dailyactivity
    ADD CONSTRAINT daily_activity_day UNIQUE NULLS NOT DISTINCT (day, agent_id, channel);
ALTER TABLE ONLY __schema__.django_admin_log
    ADD CONSTRAINT django_admin_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.django_content_type
    ADD CONSTRAINT django_content_type_app_label_model_76bd3d3b_uniq UNIQUE (app_label, model);
ALTER TABLE ONLY __schema__.django_content_type
    ADD CONSTRAINT django_content_type_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.django_session
    ADD CONSTRAINT django_session_pkey PRIMARY KEY (session_key);
ALTER TABLE ONLY __schema__.outbox_eventdelivery
    ADD CONSTRAINT event_delivery_once UNIQUE (subscription_id, event_id);
ALTER TABLE ONLY __schema__.audit_listexportpart
    ADD CONSTRAINT export_parts UNIQUE (export_id, number);
ALTER TABLE ONLY __schema__.orchestrator_extractioncursor
    ADD CONSTRAINT extraction_cursor_thread UNIQUE (user_id, agent_id, thread_id);
ALTER TABLE ONLY __schema__.memory_factevidence
    ADD CONSTRAINT fact_evidence_quote UNIQUE (memory_id, message_id, start, "end");
ALTER TABLE ONLY __schema__.orchestrator_channelidentity
    ADD CONSTRAINT identity_native UNIQUE (channel, workspace, native_id);
ALTER TABLE ONLY __schema__.orchestrator_channelidentity
    ADD CONSTRAINT identity_own UNIQUE (own_id);
ALTER TABLE ONLY __schema__.orchestrator_languagemodel
    ADD CONSTRAINT language_model_name UNIQUE (name);
ALTER TABLE ONLY __schema__.memory_conversation
    ADD CONSTRAINT memory_conversation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_conversationembedding
    ADD CONSTRAINT memory_conversationembedding_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_conversationitem
    ADD CONSTRAINT memory_conversationitem_number_key UNIQUE (number);
ALTER TABLE ONLY __schema__.memory_conversationitem
    ADD CONSTRAINT memory_conversationitem_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_factevent
    ADD CONSTRAINT memory_factevent_number_key UNIQUE (number);
ALTER TABLE ONLY __schema__.memory_factevent
    ADD CONSTRAINT memory_factevent_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_factevidence
    ADD CONSTRAINT memory_factevidence_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_indexedmessage
    ADD CONSTRAINT memory_indexedmessage_message_id_key UNIQUE (message_id);
ALTER TABLE ONLY __schema__.memory_indexedmessage
    ADD CONSTRAINT memory_indexedmessage_pkey PRIMARY KEY (message_number);
ALTER TABLE ONLY __schema__.memory_memoryattribute
    ADD CONSTRAINT memory_memoryattribute_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_memoryentry
    ADD CONSTRAINT memory_memoryentry_pkey PRIMARY KEY (memory_id);
ALTER TABLE ONLY __schema__.memory_message
    ADD CONSTRAINT memory_message_in_reply_to_id_key UNIQUE (in_reply_to_id);
ALTER TABLE ONLY __schema__.memory_message
    ADD CONSTRAINT memory_message_number_key UNIQUE (number);
ALTER TABLE ONLY __schema__.memory_message
    ADD CONSTRAINT memory_message_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_messageattribute
    ADD CONSTRAINT memory_messageattribute_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_pendingembedding
    ADD CONSTRAINT memory_pendingembedding_pkey PRIMARY KEY (message_id);
ALTER TABLE ONLY __schema__.memory_personname
    ADD CONSTRAINT memory_personname_pkey PRIMARY KEY (user_id, name);
ALTER TABLE ONLY __schema__.memory_posting
    ADD CONSTRAINT memory_posting_pkey PRIMARY KEY (scope_id, lexeme_hash, message_number) INCLUDE (weight, tenant_id);
ALTER TABLE ONLY __schema__.memory_promptsource
    ADD CONSTRAINT memory_promptsource_pkey PRIMARY KEY (event_id, source_id);
ALTER TABLE ONLY __schema__.memory_recallevent
    ADD CONSTRAINT memory_recallevent_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_recallevent
    ADD CONSTRAINT memory_recallevent_reply_id_key UNIQUE (reply_id);
ALTER TABLE ONLY __schema__.memory_recallexclusion
    ADD CONSTRAINT memory_recallexclusion_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_scope
    ADD CONSTRAINT memory_scope_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.memory_windowclear
    ADD CONSTRAINT memory_windowclear_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_agent
    ADD CONSTRAINT orchestrator_agent_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_agentversion
    ADD CONSTRAINT orchestrator_agentversion_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_answeroptions
    ADD CONSTRAINT orchestrator_answeroptions_pkey PRIMARY KEY (message_id);
ALTER TABLE ONLY __schema__.orchestrator_channelidentity
    ADD CONSTRAINT orchestrator_channelidentity_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_dailyactivity
    ADD CONSTRAINT orchestrator_dailyactivity_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_dailyusage
    ADD CONSTRAINT orchestrator_dailyusage_pkey PRIMARY KEY (day);
ALTER TABLE ONLY __schema__.orchestrator_escalation
    ADD CONSTRAINT orchestrator_escalation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_extractioncursor
    ADD CONSTRAINT orchestrator_extractioncursor_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_extractionrun
    ADD CONSTRAINT orchestrator_extractionrun_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_historyimport
    ADD CONSTRAINT orchestrator_historyimport_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_languagemodel
    ADD CONSTRAINT orchestrator_languagemodel_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_modelcall
    ADD CONSTRAINT orchestrator_modelcall_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_moveofpast
    ADD CONSTRAINT orchestrator_moveofpast_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_questionanswer
    ADD CONSTRAINT orchestrator_questionanswer_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_savedquestion
    ADD CONSTRAINT orchestrator_savedquestion_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_toolcall
    ADD CONSTRAINT orchestrator_toolcall_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.outbox_eventdelivery
    ADD CONSTRAINT outbox_eventdelivery_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.outbox_outboxevent
    ADD CONSTRAINT outbox_outboxevent_number_key UNIQUE (number);
ALTER TABLE ONLY __schema__.outbox_outboxevent
    ADD CONSTRAINT outbox_outboxevent_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.outbox_subscription
    ADD CONSTRAINT outbox_subscription_pkey PRIMARY KEY (id);
ALTER TABLE ONLY __schema__.orchestrator_questionanswer
    ADD CONSTRAINT question_answer_version UNIQUE (question_id, version);
ALTER TABLE ONLY __schema__.memory_recallexclusion
    ADD CONSTRAINT recall_exclusion_words UNIQUE NULLS NOT DISTINCT (message_id, memory_id, echo_of, start, "end");
ALTER TABLE ONLY __schema__.audit_retentionrule
    ADD CONSTRAINT retention_one_rule UNIQUE NULLS NOT DISTINCT (agent_id);
ALTER TABLE ONLY __schema__.memory_scope
    ADD CONSTRAINT scope_agent_user UNIQUE (agent_id, user_id);
ALTER TABLE ONLY __schema__.channels_slackmember
    ADD CONSTRAINT slack_member UNIQUE (installation_id, slack_id);
ALTER TABLE ONLY __schema__.channels_slackinstallation
    ADD CONSTRAINT slack_workspace UNIQUE (workspace);
ALTER TABLE ONLY __schema__.orchestrator_toolcall
    ADD CONSTRAINT tool_call_place UNIQUE (message_id, round, "position");
CREATE INDEX access_by_actor ON __schema__.audit_accessevent USING btree (actor_kind, actor_id, id DESC);
CREATE INDEX access_of_people ON __schema__.audit_accessevent USING btree (id DESC) WHERE (pseudonyms IS NOT NULL);
CREATE INDEX access_of_person ON __schema__.audit_accessevent USING btree (pseudonym, id DESC);
CREATE INDEX conversation_item_thread ON __schema__.memory_conversationitem USING btree (agent_id, user_id, thread_id, created_at, number);
CREATE INDEX conversation_item_user ON __schema__.memory_conversationitem USING btree (user_id);
CREATE INDEX conversation_user ON __schema__.memory_conversation USING btree (user_id);
CREATE INDEX creation_made ON __schema__.api_creation USING btree (made);
CREATE INDEX delivery_created ON __schema__.channels_delivery USING btree (created_at, message_id);
CREATE INDEX django_admin_log_content_type_id_c4bce8eb ON __schema__.django_admin_log USING btree (content_type_id);
CREATE INDEX django_admin_log_user_id_c564eba6 ON __schema__.django_admin_log USING btree (user_id);
CREATE INDEX django_session_expire_date_a5c62663 ON __schema__.django_session USING btree (expire_date);
CREATE INDEX embedding_hnsw ON __schema__.memory_conversationembedding USING hnsw (embedding extensions.vector_cosine_ops) WITH (m='16', ef_construction='64');
CREATE INDEX embedding_newest ON __schema__.memory_conversationembedding USING btree (created_at DESC, id);
CREATE UNIQUE INDEX embedding_piece ON __schema__.memory_conversationembedding USING btree (message_id, embedding_model, piece) WHERE (message_id IS NOT NULL);
CREATE INDEX embedding_quantized ON __schema__.memory_conversationembedding USING btree (tenant_id, agent_id, user_id, embedding_model) INCLUDE (id, quantized) WHERE (message_id IS NOT NULL);
CREATE INDEX embedding_scope ON __schema__.memory_conversationembedding USING btree (tenant_id, agent_id, user_id, created_at DESC) INCLUDE (embedding_model);
CREATE UNIQUE INDEX erasure_one_open_request ON __schema__.audit_erasurerequest USING btree (user_id, agent_id) NULLS NOT DISTINCT WHERE (done_at IS NULL);
CREATE INDEX escalation_newest ON __schema__.orchestrator_escalation USING btree (opened_at DESC, id);
CREATE UNIQUE INDEX escalation_one_open ON __schema__.orchestrator_escalation USING btree (agent_id, user_id, thread_id) WHERE (resolved_at IS NULL);
CREATE INDEX escalation_thread ON __schema__.orchestrator_escalation USING btree (thread_id) WHERE (resolved_at IS NULL);
CREATE INDEX escalation_user ON __schema__.orchestrator_escalation USING btree (user_id, opened_at DESC);
CREATE INDEX event_delivery_all ON __schema__.outbox_eventdelivery USING btree (created_at DESC, id);
CREATE INDEX event_delivery_newest ON __schema__.outbox_eventdelivery USING btree (subscription_id, created_at DESC);
CREATE INDEX event_newest ON __schema__.outbox_outboxevent USING btree (created_at DESC, id);
CREATE INDEX event_subject ON __schema__.outbox_outboxevent USING btree (subject_id);
CREATE INDEX event_user ON __schema__.outbox_outboxevent USING btree (user_id);
CREATE INDEX event_without_number ON __schema__.outbox_outboxevent USING btree (created_at, id) WHERE (number IS NULL);
CREATE INDEX extraction_run_newest ON __schema__.orchestrator_extractionrun USING btree (created_at DESC, id);
CREATE INDEX extraction_run_user ON __schema__.orchestrator_extractionrun USING btree (user_id, created_at DESC);
CREATE INDEX fact_attribute_number ON __schema__.memory_memoryattribute USING btree (key, number, memory_id) INCLUDE (tenant_id) WHERE (number IS NOT NULL);
CREATE INDEX fact_attribute_text ON __schema__.memory_memoryattribute USING btree (key, kind, text, memory_id) INCLUDE (tenant_id);
CREATE UNIQUE INDEX fact_content ON __schema__.memory_memoryentry USING btree (content_digest, agent_id, user_id) NULLS NOT DISTINCT WHERE ((external_id IS NULL) AND (version_of IS NULL));
CREATE INDEX fact_event_fact ON __schema__.memory_factevent USING btree (memory_id, number);
CREATE INDEX fact_evidence_run ON __schema__.memory_factevidence USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE UNIQUE INDEX fact_external_id ON __schema__.memory_memoryentry USING btree (external_id, agent_id, user_id) NULLS NOT DISTINCT WHERE ((external_id IS NOT NULL) AND (version_of IS NULL));
CREATE INDEX fact_hnsw ON __schema__.memory_memoryentry USING hnsw (embedding extensions.vector_cosine_ops) WITH (m='16', ef_construction='64');
CREATE INDEX fact_newest ON __schema__.memory_memoryentry USING btree (tenant_id, created_at DESC);
CREATE INDEX fact_proposed ON __schema__.memory_memoryentry USING btree (created_at, memory_id) INCLUDE (tenant_id) WHERE ((state = 'proposed'::text) AND (version_of IS NULL));
CREATE INDEX fact_run ON __schema__.memory_memoryentry USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX fact_scope ON __schema__.memory_memoryentry USING btree (tenant_id, agent_id, user_id, created_at DESC);
CREATE INDEX fact_slot ON __schema__.memory_memoryentry USING btree (user_id, agent_id, slot) INCLUDE (tenant_id) WHERE ((version_of IS NULL) AND (NOT (slot = ''::text)));
CREATE INDEX fact_user ON __schema__.memory_memoryentry USING btree (user_id) INCLUDE (tenant_id) WHERE (version_of IS NULL);
CREATE INDEX fact_versions ON __schema__.memory_memoryentry USING btree (version_of, valid_from) WHERE (version_of IS NOT NULL);
CREATE INDEX identity_newest ON __schema__.orchestrator_channelidentity USING btree (created_at DESC, id);
CREATE INDEX identity_user ON __schema__.orchestrator_channelidentity USING btree (user_id);
CREATE INDEX indexed_message_turns ON __schema__.memory_indexedmessage USING btree (scope_id, session, created_at, message_number) INCLUDE (card, words, lexemes, tenant_id);
CREATE INDEX memory_conversationitem_message_id_0d486e4f ON __schema__.memory_conversationitem USING btree (message_id);
CREATE INDEX memory_factevidence_message_id_aa3ef343 ON __schema__.memory_factevidence USING btree (message_id);
CREATE INDEX memory_memoryattribute_memory_id_0f2fbcf8 ON __schema__.memory_memoryattribute USING btree (memory_id);
CREATE INDEX memory_messageattribute_message_id_04f794ca ON __schema__.memory_messageattribute USING btree (message_id);
CREATE INDEX message_agent ON __schema__.memory_message USING btree (agent_id, created_at, number);
CREATE INDEX message_attribute_number ON __schema__.memory_messageattribute USING btree (key, number, message_id) INCLUDE (tenant_id) WHERE (number IS NOT NULL);
CREATE INDEX message_attribute_text ON __schema__.memory_messageattribute USING btree (key, kind, text, message_id) INCLUDE (tenant_id);
CREATE INDEX message_created ON __schema__.memory_message USING btree (created_at) INCLUDE (tenant_id);
CREATE UNIQUE INDEX message_erasure_one_open ON __schema__.audit_messageerasure USING btree (agent_id, user_id, thread_id, message_id) NULLS NOT DISTINCT WHERE (done_at IS NULL);
CREATE UNIQUE INDEX message_external_id ON __schema__.memory_message USING btree (agent_id, user_id, external_id) WHERE (external_id IS NOT NULL);
CREATE UNIQUE INDEX message_idempotency_key ON __schema__.memory_message USING btree (idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX message_scope ON __schema__.memory_message USING btree (agent_id, user_id, created_at, number);
CREATE INDEX message_sent ON __schema__.memory_message USING btree (created_at, number) WHERE ((role = 'user'::text) AND (NOT (channel = 'import'::text)));
CREATE INDEX message_thread ON __schema__.memory_message USING btree (agent_id, user_id, thread_id, created_at, number);
CREATE INDEX message_thread_time ON __schema__.memory_message USING btree (thread_id, created_at, number);
CREATE INDEX message_user ON __schema__.memory_message USING btree (user_id, created_at, number) INCLUDE (agent_id, tenant_id);
CREATE INDEX model_call_of_message ON __schema__.orchestrator_modelcall USING btree (message_id, created_at) WHERE (message_id IS NOT NULL);
CREATE INDEX model_call_time ON __schema__.orchestrator_modelcall USING btree (created_at, agent_id) INCLUDE (tenant_id);
CREATE INDEX model_call_unknown ON __schema__.orchestrator_modelcall USING btree (created_at) WHERE (outcome = ''::text);
CREATE UNIQUE INDEX move_one_open ON __schema__.orchestrator_moveofpast USING btree (from_user) WHERE (done_at IS NULL);
CREATE INDEX move_user ON __schema__.orchestrator_moveofpast USING btree (user_id);
CREATE INDEX outbox_eventdelivery_event_id_29295cc3 ON __schema__.outbox_eventdelivery USING btree (event_id);
CREATE INDEX posting_word ON __schema__.memory_posting USING btree (lexeme_hash);
CREATE INDEX prompt_source ON __schema__.memory_promptsource USING btree (source_id);
CREATE INDEX recall_event_newest ON __schema__.memory_recallevent USING btree (created_at DESC, id) INCLUDE (tenant_id, abstained);
CREATE INDEX recall_event_scope ON __schema__.memory_recallevent USING btree (agent_id, user_id, created_at);
CREATE INDEX recall_event_user ON __schema__.memory_recallevent USING btree (user_id, created_at, id);
CREATE INDEX recall_exclusion_echo ON __schema__.memory_recallexclusion USING btree (echo_of) WHERE (echo_of IS NOT NULL);
CREATE INDEX recall_exclusion_fact ON __schema__.memory_recallexclusion USING btree (memory_id) WHERE (memory_id IS NOT NULL);
CREATE INDEX recall_exclusion_scope ON __schema__.memory_recallexclusion USING btree (agent_id, user_id);
CREATE INDEX saved_question_agent ON __schema__.orchestrator_savedquestion USING btree (agent_id, created_at);
CREATE INDEX tool_call_newest ON __schema__.orchestrator_toolcall USING btree (created_at DESC, id);
CREATE INDEX tool_call_overdue ON __schema__.orchestrator_toolcall USING btree (expires_at) WHERE (state = 'waiting'::text);
CREATE INDEX tool_call_thread ON __schema__.orchestrator_toolcall USING btree (thread_id) WHERE (state = 'waiting'::text);
CREATE INDEX tool_call_user ON __schema__.orchestrator_toolcall USING btree (user_id, created_at DESC);
CREATE INDEX window_clear_scope ON __schema__.memory_windowclear USING btree (agent_id, user_id, id);
ALTER TABLE ONLY __schema__.api_apikey
    ADD CONSTRAINT api_apikey_agent_id_85e061bf_fk_orchestrator_agent_id FOREIGN KEY (agent_id) REFERENCES __schema__.orchestrator_agent(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.audit_listexportpart
    ADD CONSTRAINT audit_listexportpart_export_id_8f60db56_fk_audit_listexport_id FOREIGN KEY (export_id) REFERENCES __schema__.audit_listexport(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.auth_group_permissions
    ADD CONSTRAINT auth_group_permissio_permission_id_84c5c92e_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES __schema__.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_b120cbf9_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES __schema__.auth_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_2f476e4b_fk_django_co FOREIGN KEY (content_type_id) REFERENCES __schema__.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.auth_user_groups
    ADD CONSTRAINT auth_user_groups_group_id_97559544_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES __schema__.auth_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_6a12ed8b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES __schema__.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permi_permission_id_1fbb5f2c_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES __schema__.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_a95ead1b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES __schema__.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.channels_delivery
    ADD CONSTRAINT channels_delivery_message_id_60a11a5e_fk_memory_message_id FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.channels_slackinstallation
    ADD CONSTRAINT channels_slackinstal_agent_id_ada11532_fk_orchestra FOREIGN KEY (agent_id) REFERENCES __schema__.orchestrator_agent(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.channels_slackmember
    ADD CONSTRAINT channels_slackmember_installation_id_7d8a259d_fk_channels_ FOREIGN KEY (installation_id) REFERENCES __schema__.channels_slackinstallation(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.channels_slackmember
    ADD CONSTRAINT channels_slackmember_member_id_8e685eb0_fk_auth_user_id FOREIGN KEY (member_id) REFERENCES __schema__.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.django_admin_log
    ADD CONSTRAINT django_admin_log_content_type_id_c4bce8eb_fk_django_co FOREIGN KEY (content_type_id) REFERENCES __schema__.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.django_admin_log
    ADD CONSTRAINT django_admin_log_user_id_c564eba6_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES __schema__.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_conversationembedding
    ADD CONSTRAINT memory_conversatione_message_id_c5214ef4_fk_memory_me FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_conversationitem
    ADD CONSTRAINT memory_conversationi_message_id_0d486e4f_fk_memory_me FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_factevent
    ADD CONSTRAINT memory_factevent_memory_id_b781fb4a_fk_memory_me FOREIGN KEY (memory_id) REFERENCES __schema__.memory_memoryentry(memory_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_factevidence
    ADD CONSTRAINT memory_factevidence_memory_id_cc2cef7f_fk_memory_me FOREIGN KEY (memory_id) REFERENCES __schema__.memory_memoryentry(memory_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_factevidence
    ADD CONSTRAINT memory_factevidence_message_id_aa3ef343_fk_memory_message_id FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_memoryattribute
    ADD CONSTRAINT memory_memoryattribu_memory_id_0f2fbcf8_fk_memory_me FOREIGN KEY (memory_id) REFERENCES __schema__.memory_memoryentry(memory_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_message
    ADD CONSTRAINT memory_message_in_reply_to_id_5a011a9b_fk_memory_message_id FOREIGN KEY (in_reply_to_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_messageattribute
    ADD CONSTRAINT memory_messageattrib_message_id_04f794ca_fk_memory_me FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_pendingembedding
    ADD CONSTRAINT memory_pendingembedd_message_id_61f48882_fk_memory_me FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_promptsource
    ADD CONSTRAINT memory_promptsource_event_id_0f48434a_fk_memory_recallevent_id FOREIGN KEY (event_id) REFERENCES __schema__.memory_recallevent(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_recallevent
    ADD CONSTRAINT memory_recallevent_reply_id_6586a971_fk_memory_message_id FOREIGN KEY (reply_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.memory_recallexclusion
    ADD CONSTRAINT memory_recallexclusion_message_id_de2bcceb_fk_memory_message_id FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.orchestrator_modelcall
    ADD CONSTRAINT model_call_message FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) ON DELETE SET NULL;
ALTER TABLE ONLY __schema__.orchestrator_answeroptions
    ADD CONSTRAINT orchestrator_answero_message_id_613b3c15_fk_memory_me FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.orchestrator_questionanswer
    ADD CONSTRAINT orchestrator_questio_question_id_a7353ec0_fk_orchestra FOREIGN KEY (question_id) REFERENCES __schema__.orchestrator_savedquestion(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.orchestrator_toolcall
    ADD CONSTRAINT orchestrator_toolcall_message_id_45abe99c_fk_memory_message_id FOREIGN KEY (message_id) REFERENCES __schema__.memory_message(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.outbox_eventdelivery
    ADD CONSTRAINT outbox_eventdelivery_event_id_29295cc3_fk_outbox_outboxevent_id FOREIGN KEY (event_id) REFERENCES __schema__.outbox_outboxevent(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY __schema__.outbox_eventdelivery
    ADD CONSTRAINT outbox_eventdelivery_subscription_id_9c7f4630_fk_outbox_su FOREIGN KEY (subscription_id) REFERENCES __schema__.outbox_subscription(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE __schema__.api_apikey ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.api_creation ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.audit_accessevent ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.audit_erasurerequest ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.audit_listexport ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.audit_listexportpart ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.audit_messageerasure ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.audit_person ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.audit_retentionrule ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_group ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_group_permissions ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_permission ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_user ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_user_groups ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.auth_user_user_permissions ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.channels_arrival ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.channels_delivery ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.channels_slackinstallation ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.channels_slackmember ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.checkpoint_blobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.checkpoint_migrations ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.checkpoint_writes ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.checkpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.django_admin_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.django_content_type ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.django_migrations ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.django_session ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_conversation ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_conversationembedding ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_conversationitem ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_factevent ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_factevidence ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_indexedmessage ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_memoryattribute ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_memoryentry ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_message ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_messageattribute ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_pendingembedding ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_personname ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_posting ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_promptsource ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_recallevent ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_recallexclusion ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_scope ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.memory_windowclear ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_agent ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_agentversion ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_answeroptions ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_channelidentity ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_dailyactivity ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_dailyusage ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_escalation ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_extractioncursor ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_extractionrun ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_historyimport ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_languagemodel ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_modelcall ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_moveofpast ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_questionanswer ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_savedquestion ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.orchestrator_toolcall ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.outbox_eventdelivery ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.outbox_outboxevent ENABLE ROW LEVEL SECURITY;
ALTER TABLE __schema__.outbox_subscription ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON __schema__.api_apikey USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.api_creation USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.audit_accessevent USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.audit_erasurerequest USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.audit_listexport USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.audit_listexportpart USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.audit_messageerasure USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.audit_person USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.audit_retentionrule USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.auth_group USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.auth_group_permissions USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.auth_permission USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.auth_user USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.auth_user_groups USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.auth_user_user_permissions USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.channels_arrival USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.channels_delivery USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.channels_slackinstallation USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.channels_slackmember USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.checkpoint_blobs USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.checkpoint_migrations USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.checkpoint_writes USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.checkpoints USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.django_admin_log USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.django_content_type USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.django_migrations USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.django_session USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_conversation USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_conversationembedding USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_conversationitem USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_factevent USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_factevidence USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_indexedmessage USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_memoryattribute USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_memoryentry USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_message USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_messageattribute USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_pendingembedding USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_personname USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_posting USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_promptsource USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_recallevent USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_recallexclusion USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_scope USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.memory_windowclear USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_agent USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_agentversion USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_answeroptions USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_channelidentity USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_dailyactivity USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_dailyusage USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_escalation USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_extractioncursor USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_extractionrun USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_historyimport USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_languagemodel USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_modelcall USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_moveofpast USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_questionanswer USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_savedquestion USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.orchestrator_toolcall USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.outbox_eventdelivery USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.outbox_outboxevent USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
CREATE POLICY tenant_isolation ON __schema__.outbox_subscription USING (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid))) WITH CHECK (((tenant_id = '__tenant__'::uuid) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text, true), ''::text))::uuid AS "nullif") = '__tenant__'::uuid)));
GRANT USAGE ON SCHEMA __schema__ TO konstruct_app;
REVOKE ALL ON LANGUAGE plpgsql FROM PUBLIC;
GRANT ALL ON LANGUAGE plpgsql TO konstruct_owner;
GRANT SELECT,INSERT,UPDATE ON TABLE __schema__.api_apikey TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.api_creation TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.audit_accessevent TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.audit_erasurerequest TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.audit_listexport TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.audit_listexportpart TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.audit_messageerasure TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.audit_person TO konstruct_app;
GRANT UPDATE(time_zone) ON TABLE __schema__.audit_person TO konstruct_app;
GRANT UPDATE(channel_time_zone) ON TABLE __schema__.audit_person TO konstruct_app;
GRANT UPDATE(erasures) ON TABLE __schema__.audit_person TO konstruct_app;
GRANT UPDATE(chosen_name) ON TABLE __schema__.audit_person TO konstruct_app;
GRANT UPDATE(language) ON TABLE __schema__.audit_person TO konstruct_app;
GRANT UPDATE(metadata) ON TABLE __schema__.audit_person TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.audit_retentionrule TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.auth_group TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.auth_group_permissions TO konstruct_app;
GRANT SELECT ON TABLE __schema__.auth_permission TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.auth_user TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.auth_user_groups TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.auth_user_user_permissions TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.channels_arrival TO konstruct_app;
GRANT SELECT,INSERT,UPDATE ON TABLE __schema__.channels_delivery TO konstruct_app;
GRANT SELECT,INSERT,UPDATE ON TABLE __schema__.channels_slackinstallation TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.channels_slackmember TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.checkpoint_blobs TO konstruct_app;
GRANT SELECT ON TABLE __schema__.checkpoint_migrations TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.checkpoint_writes TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.checkpoints TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.django_admin_log TO konstruct_app;
GRANT SELECT ON TABLE __schema__.django_content_type TO konstruct_app;
GRANT SELECT ON TABLE __schema__.django_migrations TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.django_session TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.memory_conversation TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_conversationembedding TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.memory_conversationitem TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.memory_factevent TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.memory_factevidence TO konstruct_app;
GRANT UPDATE(memory_id) ON TABLE __schema__.memory_factevidence TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_indexedmessage TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.memory_memoryattribute TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.memory_memoryentry TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_message TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_messageattribute TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.memory_pendingembedding TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_personname TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_posting TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_promptsource TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_recallevent TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.memory_recallexclusion TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_scope TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.memory_windowclear TO konstruct_app;
GRANT SELECT,INSERT,UPDATE ON TABLE __schema__.orchestrator_agent TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.orchestrator_agentversion TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.orchestrator_answeroptions TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.orchestrator_channelidentity TO konstruct_app;
GRANT UPDATE(user_id) ON TABLE __schema__.orchestrator_channelidentity TO konstruct_app;
GRANT UPDATE(name) ON TABLE __schema__.orchestrator_channelidentity TO konstruct_app;
GRANT UPDATE(looked_up_at) ON TABLE __schema__.orchestrator_channelidentity TO konstruct_app;
GRANT UPDATE(linked_at) ON TABLE __schema__.orchestrator_channelidentity TO konstruct_app;
GRANT UPDATE(linked_by) ON TABLE __schema__.orchestrator_channelidentity TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.orchestrator_dailyactivity TO konstruct_app;
GRANT SELECT,INSERT,UPDATE ON TABLE __schema__.orchestrator_dailyusage TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.orchestrator_escalation TO konstruct_app;
GRANT UPDATE(resolved_at) ON TABLE __schema__.orchestrator_escalation TO konstruct_app;
GRANT UPDATE(resolved_by) ON TABLE __schema__.orchestrator_escalation TO konstruct_app;
GRANT UPDATE(note) ON TABLE __schema__.orchestrator_escalation TO konstruct_app;
GRANT UPDATE(outcome) ON TABLE __schema__.orchestrator_escalation TO konstruct_app;
GRANT UPDATE(assigned_to) ON TABLE __schema__.orchestrator_escalation TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.orchestrator_extractioncursor TO konstruct_app;
GRANT SELECT,INSERT,UPDATE ON TABLE __schema__.orchestrator_extractionrun TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.orchestrator_historyimport TO konstruct_app;
GRANT UPDATE(content) ON TABLE __schema__.orchestrator_historyimport TO konstruct_app;
GRANT UPDATE(is_dry_run) ON TABLE __schema__.orchestrator_historyimport TO konstruct_app;
GRANT UPDATE(report) ON TABLE __schema__.orchestrator_historyimport TO konstruct_app;
GRANT UPDATE(finished_at) ON TABLE __schema__.orchestrator_historyimport TO konstruct_app;
GRANT UPDATE(error) ON TABLE __schema__.orchestrator_historyimport TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.orchestrator_languagemodel TO konstruct_app;
GRANT SELECT,INSERT,UPDATE ON TABLE __schema__.orchestrator_modelcall TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.orchestrator_moveofpast TO konstruct_app;
GRANT UPDATE(user_id) ON TABLE __schema__.orchestrator_moveofpast TO konstruct_app;
GRANT UPDATE(requested_by) ON TABLE __schema__.orchestrator_moveofpast TO konstruct_app;
GRANT UPDATE(last_error) ON TABLE __schema__.orchestrator_moveofpast TO konstruct_app;
GRANT UPDATE(done_at) ON TABLE __schema__.orchestrator_moveofpast TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.orchestrator_questionanswer TO konstruct_app;
GRANT SELECT,INSERT,DELETE ON TABLE __schema__.orchestrator_savedquestion TO konstruct_app;
GRANT UPDATE(content) ON TABLE __schema__.orchestrator_savedquestion TO konstruct_app;
GRANT SELECT,INSERT ON TABLE __schema__.orchestrator_toolcall TO konstruct_app;
GRANT UPDATE(state) ON TABLE __schema__.orchestrator_toolcall TO konstruct_app;
GRANT UPDATE(decided_at) ON TABLE __schema__.orchestrator_toolcall TO konstruct_app;
GRANT UPDATE(decided_by) ON TABLE __schema__.orchestrator_toolcall TO konstruct_app;
GRANT UPDATE(done_at) ON TABLE __schema__.orchestrator_toolcall TO konstruct_app;
GRANT UPDATE(result) ON TABLE __schema__.orchestrator_toolcall TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.outbox_eventdelivery TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.outbox_outboxevent TO konstruct_app;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE __schema__.outbox_subscription TO konstruct_app;
