//! Id 11: a line for the log of Azure DevOps. Version 1.2.0, and only on such an agent.

use crate::envelope::envelope;

envelope! {
    /// A line for the log of Azure DevOps.
    pub struct AzureDevOpsLog {
        /// The run that this belongs to.
        1 "ExecutionId" => execution_id: String,
        /// The process that sends it.
        2 "InstanceId" => instance_id: String,
        /// The line.
        3 "LogText" => text: String,
    }
}
