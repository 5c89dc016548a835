{{- /* The rules to change objects under a list of policies. */}}
{{- define "reprieve.changeRules" }}
  # Changes, from crates/api/src/permissions.rs by `cargo xtask fix`.
  # Evict victims.
  - apiGroups: [""]
    resources: [pods]
    verbs: [delete]
  # Bind pods.
  - apiGroups: [""]
    resources: [pods/binding]
    verbs: [create]
  # Nominate pods, mark victims, and set conditions.
  - apiGroups: [""]
    resources: [pods/status]
    verbs: [patch]
  {{- if has "Kubernetes" . }}
  # Set conditions: scheduled, waiting, pods with another priority, invalid preemption priority.
  - apiGroups: [scheduling.k8s.io]
    resources: [podgroups/status]
    verbs: [patch]
  {{- end }}
  {{- if has "Kueue" . }}
  # Create the workloads of Jobs.
  - apiGroups: [kueue.x-k8s.io]
    resources: [workloads]
    verbs: [create]
  {{- end }}
  {{- if has "Kueue" . }}
  # Admit, evict, requeue and finish workloads.
  - apiGroups: [kueue.x-k8s.io]
    resources: [workloads/status]
    verbs: [patch]
  {{- end }}
  {{- if has "Kueue" . }}
  # Start, suspend and restore Jobs.
  - apiGroups: [batch]
    resources: [jobs]
    verbs: [patch]
  {{- end }}
  # Write events.
  - apiGroups: [events.k8s.io]
    resources: [events]
    verbs: [create]
  # End of the changes.
{{- end }}
