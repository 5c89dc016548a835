use reprieve_engine::Outcome;
use reprieve_objects::{load::*, objects::Objects, question::Question, read::documents};
fn main() {
    let mut bad = 0;
    let mut good = 0;
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut objects = Objects::default();
        let mut test = None;
        for d in documents(&path, &text) {
            if let Some(t) = d.read(&mut objects).unwrap_or_else(|e| panic!("{e}")) {
                test = Some(t.object)
            }
        }
        let test = test.unwrap();
        let mut loaded = match load(&objects, Strictness::Test) {
            Ok(l) => l,
            Err(e) => {
                println!("{e}");
                bad += 1;
                continue;
            }
        };
        let q = Question::new(&test.spec, &loaded).unwrap_or_else(|e| panic!("{path} {e}"));
        let out = q.decide(&mut loaded);
        let n = &loaded.names;
        let (o, mut victims, nom) = match &out {
            Outcome::Schedule(p) => ("Schedule", vec![], p.clone()),
            Outcome::Preempt(p) => (
                "Preempt",
                p.victims
                    .iter()
                    .flat_map(|u| loaded.snapshot.unit(*u).pods.iter())
                    .map(|p| n.pod(*p).to_string())
                    .collect(),
                p.placement.clone(),
            ),
            Outcome::Wait(_) => ("Wait", vec![], vec![]),
            Outcome::Unschedulable(_) => ("Unschedulable", vec![], vec![]),
        };
        victims.sort();
        let e = test.spec.expect.unwrap();
        let sets: Vec<Vec<String>> = e
            .any_of
            .clone()
            .unwrap_or_else(|| vec![e.victims.clone().unwrap_or_default()])
            .into_iter()
            .map(|v| {
                let mut v: Vec<String> = v.into_iter().map(|v| v.pod.unwrap()).collect();
                v.sort();
                v
            })
            .collect();
        let nom: std::collections::BTreeMap<String, String> =
            nom.iter().map(|(p, nn)| (n.pod(*p).to_string(), n.node(*nn).to_string())).collect();
        let ok = format!("{:?}", e.outcome) == o
            && sets.contains(&victims)
            && e.nominated.iter().flatten().all(|(p, nn)| nom.get(p) == Some(nn));
        if ok {
            good += 1
        } else {
            bad += 1;
            println!("{path}\n   got {o} {victims:?} {nom:?}\n   want {:?} {sets:?} {:?}", e.outcome, e.nominated);
        }
    }
    println!("{good} good {bad} bad");
}
