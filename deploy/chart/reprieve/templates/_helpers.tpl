{{- define "reprieve.labels" -}}
app.kubernetes.io/name: reprieve
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "reprieve.selector" -}}
app.kubernetes.io/name: reprieve
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "reprieve.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- /* The names of the profiles, as a list in the language of admission policies. */ -}}
{{- define "reprieve.schedulers" -}}
[{{ range $index, $profile := .Values.config.profiles }}{{ if $index }}, {{ end }}'{{ $profile.name }}'{{ end }}]
{{- end }}

{{- define "reprieve.configuration" -}}
apiVersion: reprieve.dev/v1alpha1
kind: Configuration
profiles:
  {{- toYaml .Values.config.profiles | nindent 2 }}
clientLimits:
  {{- toYaml .Values.config.clientLimits | nindent 2 }}
leaderElection:
  enabled: true
  namespace: {{ .Release.Namespace }}
  name: {{ .Release.Name }}
  leaseSeconds: {{ .Values.config.leaseSeconds }}
ports:
  metrics: {{ .Values.metrics.port }}
logFormat: {{ .Values.config.logFormat }}
evictionsPerMinute: {{ .Values.config.evictionsPerMinute }}
protectedNamespaces:
  {{- append .Values.config.protectedNamespaces .Release.Namespace | uniq | toYaml | nindent 2 }}
{{- if .Values.audit.enabled }}
auditFolder: /var/lib/reprieve/audit
{{- end }}
{{- end }}
