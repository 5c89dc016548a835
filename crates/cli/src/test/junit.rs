//! Test results as JUnit XML, for CI systems.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use reprieve_api::InputError;

use super::run_file::{Case, TestResult};
use crate::input::Error;

/// The JUnit file, with a suite for each folder.
pub fn report(cases: &[Case]) -> Result<String, Error> {
    let mut report = Report::new("reprieve");
    for cases in cases.chunk_by(|a, b| a.file.parent() == b.file.parent()) {
        let folder = cases[0].file.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let mut suite = TestSuite::new(folder);
        suite.add_test_cases(cases.iter().map(test_case));
        report.add_test_suite(suite);
    }
    report.to_string().map_err(|error| InputError::new(format!("the result cannot be printed: {error}")).into())
}

fn test_case(case: &Case) -> TestCase {
    let mut status = match case.result {
        TestResult::Passed => TestCaseStatus::success(),
        TestResult::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        TestResult::BadInput => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    if case.result != TestResult::Passed {
        status.set_message(case.problems.join("; "));
        status.set_description(anstream::adapter::strip_str(&case.table).to_string());
    }
    let mut test = TestCase::new(&case.name, status);
    test.set_time(case.took);
    test
}
