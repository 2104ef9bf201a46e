//! Id 5: discovered tests. Fields 3 to 9 of a test are sent only on request ([`IS_IDE`](crate::HandshakeKey::IS_IDE)),
//! since MTP 1.9.

use crate::envelope::envelope;

envelope! {
    /// Discovered tests of the application.
    pub struct DiscoveredTests {
        /// The id of the run.
        1 "ExecutionId" => execution_id: String,
        /// The id of the sending process.
        2 "InstanceId" => instance_id: String,
        /// The tests; hosts send one at a time.
        3 "DiscoveredTestMessageList" => tests: Vec<DiscoveredTest>,
    }
}

envelope! {
    /// A discovered test.
    // Hosts write field 9 before field 8.
    pub struct DiscoveredTest {
        /// The framework's id of the test, which is stable across runs.
        1 "Uid" => uid: String,
        /// The display name.
        2 "DisplayName" => display_name: String,
        /// The source file.
        3 "FilePath" => file_path: String,
        /// The line in the source file, starting at 1.
        4 "LineNumber" => line_number: i32,
        /// The namespace of the test's class.
        5 "Namespace" => namespace: String,
        /// The name of the test's class.
        6 "TypeName" => type_name: String,
        /// The name of the test's method.
        7 "MethodName" => method_name: String,
        /// The full names of the types of the method's parameters.
        9 "ParameterTypeFullNames" => parameter_types: Vec<String>,
        /// The traits, in reverse of the order in which the framework added them.
        8 "Traits" => traits: Vec<TestTrait>,
    }
}

envelope! {
    /// A trait, also known as a property or a category.
    pub struct TestTrait {
        /// The name of the trait.
        1 "Key" => key: String,
        /// The value of the trait, often empty.
        2 "Value" => value: String,
    }
}
