//! Id 11: a line for the log of Azure DevOps. Since version 1.2.0; sent only on Azure DevOps agents.

use crate::envelope::envelope;

envelope! {
    /// A line for the log of Azure DevOps.
    pub struct AzureDevOpsLog {
        /// The id of the run.
        1 "ExecutionId" => execution_id: String,
        /// The id of the sending process.
        2 "InstanceId" => instance_id: String,
        /// The line.
        3 "LogText" => text: String,
    }
}
