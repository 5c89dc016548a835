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

{{- /* The configured policies, as a JSON list. */}}
{{- define "reprieve.policies" -}}
{{- $policies := list }}
{{- range .Values.config.profiles }}
{{- $policies = append $policies .policy }}
{{- end }}
{{- $policies | uniq | toJson }}
{{- end }}

{{- /* The ConfigMap with the queues of policy YuniKorn, as a JSON object; empty if no profile has the policy. */}}
{{- define "reprieve.queues" -}}
{{- $queues := dict }}
{{- range .Values.config.profiles }}
{{- if eq .policy "YuniKorn" }}
{{- $given := .queues | default (get (.args | default dict) "queues") | default dict }}
{{- $queues = dict "namespace" ($given.namespace | default "yunikorn") "name" ($given.name | default "yunikorn-configs") }}
{{- end }}
{{- end }}
{{- $queues | toJson }}
{{- end }}

{{- define "reprieve.exposesMetrics" -}}
{{- if or .Values.metrics.expose .Values.metrics.serviceMonitor.enabled }}true{{ end }}
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
  {{- if include "reprieve.exposesMetrics" . }}
  metricsAddress: 0.0.0.0
  {{- end }}
  health: {{ .Values.health.port }}
logFormat: {{ .Values.config.logFormat }}
evictionsPerMinute: {{ .Values.config.evictionsPerMinute }}
protectedNamespaces:
  {{- append .Values.config.protectedNamespaces .Release.Namespace | uniq | toYaml | nindent 2 }}
{{- with .Values.rbac.namespaces }}
managedNamespaces:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.audit.enabled }}
auditFolder: /var/lib/reprieve/audit
{{- end }}
{{- end }}
