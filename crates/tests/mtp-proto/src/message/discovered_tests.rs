//! Id 5: tests that the application has. Fields 3 to 9 of a test are sent only if the server has asked for them
//! ([`IS_IDE`](crate::HandshakeKey::IS_IDE)), from MTP 1.9 on.

use crate::envelope::envelope;

envelope! {
    /// Tests that the application has.
    pub struct DiscoveredTests {
        /// The run that this belongs to.
        1 "ExecutionId" => execution_id: String,
        /// The process that sends it.
        2 "InstanceId" => instance_id: String,
        /// The tests; hosts send one at a time.
        3 "DiscoveredTestMessageList" => tests: Vec<DiscoveredTest>,
    }
}

envelope! {
    /// A test that the application has.
    // Hosts write field 9 before field 8.
    pub struct DiscoveredTest {
        /// What the framework calls it: the same in each run.
        1 "Uid" => uid: String,
        /// What people call it.
        2 "DisplayName" => display_name: String,
        /// The source file.
        3 "FilePath" => file_path: String,
        /// The line in it, from 1 on.
        4 "LineNumber" => line_number: i32,
        /// The namespace of its class.
        5 "Namespace" => namespace: String,
        /// Its class.
        6 "TypeName" => type_name: String,
        /// Its method.
        7 "MethodName" => method_name: String,
        /// Full names of the types of the method's parameters.
        9 "ParameterTypeFullNames" => parameter_types: Vec<String>,
        /// Its traits, in reverse of the order in which the framework added them.
        8 "Traits" => traits: Vec<TestTrait>,
    }
}

envelope! {
    /// A trait, also called a property or a category.
    pub struct TestTrait {
        /// Its name.
        1 "Key" => key: String,
        /// Its value, often empty.
        2 "Value" => value: String,
    }
}
