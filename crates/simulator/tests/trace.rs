//! Traces: the sample files are read, and an invalid line is named or skipped.

use reprieve_simulator::trace::{OnInvalidLine, Text, jobs, openb};

const NODES: &str = include_str!("../../../docs/examples/traces/openb_node_list_all_node.csv");
const PODS: &str = include_str!("../../../docs/examples/traces/openb_pod_list_sample.csv");
const JOBS: &str = include_str!("../../../docs/examples/traces/jobs.csv");

fn file<'t>(file: &'t str, text: &'t str) -> Text<'t> {
    Text { file, text }
}

#[test]
fn an_openb_trace_has_nodes_and_pods() {
    let (input, skipped) = openb(file("pods", PODS), file("nodes", NODES), OnInvalidLine::Stop).unwrap();
    assert_eq!((input.objects.len(), input.submissions.len(), skipped.lines), (6, 60, 0));
    let highest = input.submissions.iter().map(|(job, _)| job.priority()).max();
    assert_eq!(highest, Some(300));
    assert!(input.assumptions.iter().any(|note| note.starts_with("priorities")));
}

#[test]
fn a_list_of_jobs_has_gangs_and_synthetic_nodes() {
    let (input, _) = jobs(file("jobs", JOBS), None, OnInvalidLine::Stop, 3).unwrap();
    let gangs = input.submissions.iter().filter(|(job, _)| job.gang.is_some_and(|gang| gang.whole));
    assert!(gangs.count() > 3);
    assert!(input.assumptions.iter().any(|note| note.starts_with("nodes: ")));
    let (with_nodes, _) = jobs(file("jobs", JOBS), Some(file("nodes", NODES)), OnInvalidLine::Stop, 3).unwrap();
    assert_eq!(with_nodes.objects.len(), 6);
    assert!(!with_nodes.assumptions.iter().any(|note| note.starts_with("nodes: ")));
}

#[test]
fn an_invalid_line_is_named_or_skipped() {
    for (line, problem) in [
        ("j,0,1", "has 3 columns"),
        ("j,0,one,5", "gpus: \"one\" is not a whole number from 1"),
        ("j,0,0,5", "gpus: \"0\""),
        ("j,0,100000000000,5", "gpus: 100000000000 is more than any job has"),
        ("j,-1,1,5", "submit_s: \"-1\""),
        ("j,0,1,99999999999999999999", "duration_s"),
        (",0,1,5", "job: \"\" is not a name"),
    ] {
        let text = format!("job,submit_s,gpus,duration_s\na,0,1,5\n{line}\nb,5,1,5\n");
        let list = file("list.csv", &text);
        let error = jobs(list, None, OnInvalidLine::Stop, 0).unwrap_err().to_string();
        assert!(error.starts_with("list.csv: line 3: "), "{error}");
        assert!(error.contains(problem), "{problem}: {error}");
        let (input, skipped) = jobs(list, None, OnInvalidLine::Skip, 0).unwrap();
        assert_eq!((input.submissions.len(), skipped.lines), (2, 1), "{line}");
    }
    let pods = PODS.replacen(",LS,", ",XX,", 1);
    let error = openb(file("pods", &pods), file("nodes", NODES), OnInvalidLine::Stop).unwrap_err().to_string();
    assert!(error.contains("qos: \"XX\" is not known"), "{error}");
}

#[test]
fn other_tables_are_rejected() {
    let error = jobs(file("x", NODES), None, OnInvalidLine::Skip, 0).unwrap_err().to_string();
    assert!(error.contains("line 1: the columns are not job,submit_s,gpus,duration_s"), "{error}");
    let error =
        jobs(file("x", "job,submit_s,gpus,duration_s\n"), None, OnInvalidLine::Skip, 0).unwrap_err().to_string();
    assert!(error.contains("no line that can be used"), "{error}");
    let twice = "job,submit_s,gpus,duration_s\na,0,1,5\na,0,1,5\n";
    assert!(jobs(file("x", twice), None, OnInvalidLine::Stop, 0).unwrap_err().to_string().contains("twice"));
}
