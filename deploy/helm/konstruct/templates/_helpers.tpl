{{/* The name of this release's objects: RELEASE, or RELEASE-konstruct where the release is called otherwise. */}}
{{- define "konstruct.fullname" -}}
{{- if contains "konstruct" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-konstruct" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "konstruct.selector" -}}
app.kubernetes.io/name: konstruct
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "konstruct.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "konstruct.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* A digest wins over a tag. */}}
{{- define "konstruct.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/*
What each kind of process runs, and of a worker the kinds of jobs of its queues. "owner": it has the owner's password.
*/}}
{{- define "konstruct.processes" -}}
web: {command: [python, -m, gunicorn, --config, deploy/gunicorn.conf.py]}
replies: {command: [python, manage.py, worker, replies], kinds: [reply]}
deliveries: {command: [python, manage.py, worker, deliveries], kinds: [delivery, arrival, notification]}
embeddings: {command: [python, manage.py, worker, embeddings, extractions], kinds: [embedding, export, extraction, history_import, questions]}
sweeps: {command: [python, manage.py, worker, sweeps]}
beat: {command: [python, -m, celery, --quiet, --app, konstruct, beat, --pidfile=, --loglevel, INFO]}
owner: {command: [python, manage.py, owner_worker], owner: true}
{{- end }}

{{/*
The environment of a process. Arguments: root, process (its values), owner (whether it has the owner's password).
*/}}
{{- define "konstruct.env" -}}
{{- $root := .root }}
{{- $settings := merge (deepCopy (.process.settings | default dict)) $root.Values.settings }}
{{- range $name := list "ALLOWED_HOSTS" "PUBLIC_HOSTS" "TENANT_DOMAIN_SUFFIX" }}
  {{- $_ := required (printf "settings.%s is required: see docs/settings.md" $name) (get $settings $name) }}
{{- end }}
{{- range $name, $value := $settings }}
  {{- if $value }}
- name: {{ $name }}
  {{- /* 127.0.0.1 is the host of the probes. */}}
  value: {{ if has $name (list "ALLOWED_HOSTS" "PUBLIC_HOSTS") }}{{ printf "127.0.0.1,%s" $value | quote }}{{ else }}{{ $value | quote }}{{ end }}
  {{- end }}
{{- end }}
- name: HEARTBEAT_FILE
  value: /tmp/heartbeat
{{- if $root.Values.metrics.enabled }}
- name: METRICS_ADDRESS
  value: "0.0.0.0:9464"
- name: METRICS_DIR
  value: /tmp/metrics
{{- end }}
{{- $secrets := dict "secret" $root.Values.secrets.app }}
{{- if .owner }}{{ $_ := set $secrets "owner" $root.Values.secrets.owner }}{{ end }}
{{- range $kind, $secret := $secrets }}
  {{- $from := required (printf "secrets.%s.existingSecret is required: a Secret that you make" (ternary "owner" "app" (eq $kind "owner"))) $secret.existingSecret }}
  {{- range $name, $key := $secret.keys }}
    {{- if $key }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $from | quote }}
      key: {{ $key | quote }}
      {{- if not (has $name (list "DATABASE_URL" "REDIS_URL" "SECRET_KEY" "DATABASE_OWNER_URL")) }}
      optional: true
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The data of the Secrets; empty in `helm template`, which reaches no cluster. */}}
{{- define "konstruct.secrets" -}}
{{- range $secret := list .Values.secrets.app .Values.secrets.owner }}
{{- (lookup "v1" "Secret" $.Release.Namespace ($secret.existingSecret | default "none")).data | toJson }}
{{- end }}
{{- end }}

{{/*
The ports of a rule of egress. Arguments: root, to (its name), rule. With "model", also the port in LLM_POOL_URL.
*/}}
{{- define "konstruct.ports" -}}
{{- $ports := .rule.ports }}
{{- if and (eq .to "model") .root.Values.settings.LLM_POOL_URL }}
{{- $url := urlParse .root.Values.settings.LLM_POOL_URL }}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "80" "443" (eq $url.scheme "http")) }}
{{- $ports = append $ports (float64 $port) | uniq }}
{{- end }}
{{- range $ports }}
- {protocol: TCP, port: {{ . }}}
{{- if eq (int .) 53 }}
- {protocol: UDP, port: 53}
{{- end }}
{{- end }}
{{- end }}

{{/* What all pods have. Arguments: root, process (its values), owner, volumes. */}}
{{- define "konstruct.pod" -}}
{{- $root := .root }}
automountServiceAccountToken: false
serviceAccountName: {{ $root.Values.serviceAccountName | quote }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
  {{- with coalesce (get $.process $name) (get $root.Values $name) }}
{{ $name }}:
    {{- if kindIs "string" . }} {{ quote . }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
  {{- end }}
{{- end }}
volumes:
  # In memory: nothing that is kept is written.
  - name: tmp
    emptyDir: {medium: Memory, sizeLimit: {{ $root.Values.tmpSizeLimit }}}
  {{- if and .owner $root.Values.journal.existingClaim }}
  - name: journal
    persistentVolumeClaim: {claimName: {{ $root.Values.journal.existingClaim | quote }}}
  {{- end }}
  {{- with .volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $root.Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* What all containers have. Arguments: root, process (its values), owner, volumeMounts; image, instead of the usual one. */}}
{{- define "konstruct.container" -}}
{{- $root := .root }}
image: {{ .image | default (include "konstruct.image" $root) | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources:
  {{- toYaml .process.resources | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if and .owner $root.Values.journal.existingClaim }}
  - {name: journal, mountPath: /journal}
  {{- end }}
  {{- with .volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
