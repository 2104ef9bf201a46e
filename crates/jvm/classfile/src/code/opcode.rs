//! The opcodes (JVMS 6.5): their names, the forms of their operands, and the numbers of words that they pop and push.

/// The first byte of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(pub u8);

/// The form of the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    None,
    Byte,
    Short,
    ByteIndex,
    Index,
    Local,
    Iinc,
    Branch,
    WideBranch,
    TableSwitch,
    LookupSwitch,
    Interface,
    Dynamic,
    NewArray,
    MultiArray,
    Wide,
}

/// Stands for a number of words that depends on a descriptor.
const VARIES: u8 = 255;

impl Opcode {
    /// Returns the mnemonic, such as `aload_0`; `None` for unassigned and reserved opcodes.
    pub fn name(self) -> Option<&'static str> {
        TABLE.get(usize::from(self.0)).map(|row| row.0)
    }

    pub(crate) fn operands(self) -> Option<Operands> {
        TABLE.get(usize::from(self.0)).map(|row| row.1)
    }

    /// Returns the numbers of words that are popped and pushed; `None` if they depend on a descriptor.
    pub(crate) fn words(self) -> Option<(u8, u8)> {
        TABLE.get(usize::from(self.0)).map(|row| (row.2, row.3)).filter(|words| words.0 != VARIES)
    }

    /// Returns whether the instruction is one of the six returns.
    pub fn is_return(self) -> bool {
        (Self::IRETURN..=Self::RETURN).contains(&self)
    }

    /// Returns whether the next instruction can only be reached by a branch.
    pub fn ends_block(self) -> bool {
        let jump =
            matches!(self, Self::GOTO | Self::GOTO_W | Self::RET | Self::TABLESWITCH | Self::LOOKUPSWITCH);
        jump || self == Self::ATHROW || self.is_return()
    }
}

impl std::fmt::Debug for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#04x}", self.0),
        }
    }
}

/// The opcodes by their mnemonics in capital letters.
#[expect(missing_docs, reason = "the names are the specification's")]
impl Opcode {
    pub const NOP: Self = Self(0);
    pub const ACONST_NULL: Self = Self(1);
    pub const ICONST_M1: Self = Self(2);
    pub const ICONST_0: Self = Self(3);
    pub const ICONST_1: Self = Self(4);
    pub const ICONST_2: Self = Self(5);
    pub const ICONST_3: Self = Self(6);
    pub const ICONST_4: Self = Self(7);
    pub const ICONST_5: Self = Self(8);
    pub const LCONST_0: Self = Self(9);
    pub const LCONST_1: Self = Self(10);
    pub const FCONST_0: Self = Self(11);
    pub const FCONST_1: Self = Self(12);
    pub const FCONST_2: Self = Self(13);
    pub const DCONST_0: Self = Self(14);
    pub const DCONST_1: Self = Self(15);
    pub const BIPUSH: Self = Self(16);
    pub const SIPUSH: Self = Self(17);
    pub const LDC: Self = Self(18);
    pub const LDC_W: Self = Self(19);
    pub const LDC2_W: Self = Self(20);
    pub const ILOAD: Self = Self(21);
    pub const LLOAD: Self = Self(22);
    pub const FLOAD: Self = Self(23);
    pub const DLOAD: Self = Self(24);
    pub const ALOAD: Self = Self(25);
    pub const ILOAD_0: Self = Self(26);
    pub const ILOAD_1: Self = Self(27);
    pub const ILOAD_2: Self = Self(28);
    pub const ILOAD_3: Self = Self(29);
    pub const LLOAD_0: Self = Self(30);
    pub const LLOAD_1: Self = Self(31);
    pub const LLOAD_2: Self = Self(32);
    pub const LLOAD_3: Self = Self(33);
    pub const FLOAD_0: Self = Self(34);
    pub const FLOAD_1: Self = Self(35);
    pub const FLOAD_2: Self = Self(36);
    pub const FLOAD_3: Self = Self(37);
    pub const DLOAD_0: Self = Self(38);
    pub const DLOAD_1: Self = Self(39);
    pub const DLOAD_2: Self = Self(40);
    pub const DLOAD_3: Self = Self(41);
    pub const ALOAD_0: Self = Self(42);
    pub const ALOAD_1: Self = Self(43);
    pub const ALOAD_2: Self = Self(44);
    pub const ALOAD_3: Self = Self(45);
    pub const IALOAD: Self = Self(46);
    pub const LALOAD: Self = Self(47);
    pub const FALOAD: Self = Self(48);
    pub const DALOAD: Self = Self(49);
    pub const AALOAD: Self = Self(50);
    pub const BALOAD: Self = Self(51);
    pub const CALOAD: Self = Self(52);
    pub const SALOAD: Self = Self(53);
    pub const ISTORE: Self = Self(54);
    pub const LSTORE: Self = Self(55);
    pub const FSTORE: Self = Self(56);
    pub const DSTORE: Self = Self(57);
    pub const ASTORE: Self = Self(58);
    pub const ISTORE_0: Self = Self(59);
    pub const ISTORE_1: Self = Self(60);
    pub const ISTORE_2: Self = Self(61);
    pub const ISTORE_3: Self = Self(62);
    pub const LSTORE_0: Self = Self(63);
    pub const LSTORE_1: Self = Self(64);
    pub const LSTORE_2: Self = Self(65);
    pub const LSTORE_3: Self = Self(66);
    pub const FSTORE_0: Self = Self(67);
    pub const FSTORE_1: Self = Self(68);
    pub const FSTORE_2: Self = Self(69);
    pub const FSTORE_3: Self = Self(70);
    pub const DSTORE_0: Self = Self(71);
    pub const DSTORE_1: Self = Self(72);
    pub const DSTORE_2: Self = Self(73);
    pub const DSTORE_3: Self = Self(74);
    pub const ASTORE_0: Self = Self(75);
    pub const ASTORE_1: Self = Self(76);
    pub const ASTORE_2: Self = Self(77);
    pub const ASTORE_3: Self = Self(78);
    pub const IASTORE: Self = Self(79);
    pub const LASTORE: Self = Self(80);
    pub const FASTORE: Self = Self(81);
    pub const DASTORE: Self = Self(82);
    pub const AASTORE: Self = Self(83);
    pub const BASTORE: Self = Self(84);
    pub const CASTORE: Self = Self(85);
    pub const SASTORE: Self = Self(86);
    pub const POP: Self = Self(87);
    pub const POP2: Self = Self(88);
    pub const DUP: Self = Self(89);
    pub const DUP_X1: Self = Self(90);
    pub const DUP_X2: Self = Self(91);
    pub const DUP2: Self = Self(92);
    pub const DUP2_X1: Self = Self(93);
    pub const DUP2_X2: Self = Self(94);
    pub const SWAP: Self = Self(95);
    pub const IADD: Self = Self(96);
    pub const LADD: Self = Self(97);
    pub const FADD: Self = Self(98);
    pub const DADD: Self = Self(99);
    pub const ISUB: Self = Self(100);
    pub const LSUB: Self = Self(101);
    pub const FSUB: Self = Self(102);
    pub const DSUB: Self = Self(103);
    pub const IMUL: Self = Self(104);
    pub const LMUL: Self = Self(105);
    pub const FMUL: Self = Self(106);
    pub const DMUL: Self = Self(107);
    pub const IDIV: Self = Self(108);
    pub const LDIV: Self = Self(109);
    pub const FDIV: Self = Self(110);
    pub const DDIV: Self = Self(111);
    pub const IREM: Self = Self(112);
    pub const LREM: Self = Self(113);
    pub const FREM: Self = Self(114);
    pub const DREM: Self = Self(115);
    pub const INEG: Self = Self(116);
    pub const LNEG: Self = Self(117);
    pub const FNEG: Self = Self(118);
    pub const DNEG: Self = Self(119);
    pub const ISHL: Self = Self(120);
    pub const LSHL: Self = Self(121);
    pub const ISHR: Self = Self(122);
    pub const LSHR: Self = Self(123);
    pub const IUSHR: Self = Self(124);
    pub const LUSHR: Self = Self(125);
    pub const IAND: Self = Self(126);
    pub const LAND: Self = Self(127);
    pub const IOR: Self = Self(128);
    pub const LOR: Self = Self(129);
    pub const IXOR: Self = Self(130);
    pub const LXOR: Self = Self(131);
    pub const IINC: Self = Self(132);
    pub const I2L: Self = Self(133);
    pub const I2F: Self = Self(134);
    pub const I2D: Self = Self(135);
    pub const L2I: Self = Self(136);
    pub const L2F: Self = Self(137);
    pub const L2D: Self = Self(138);
    pub const F2I: Self = Self(139);
    pub const F2L: Self = Self(140);
    pub const F2D: Self = Self(141);
    pub const D2I: Self = Self(142);
    pub const D2L: Self = Self(143);
    pub const D2F: Self = Self(144);
    pub const I2B: Self = Self(145);
    pub const I2C: Self = Self(146);
    pub const I2S: Self = Self(147);
    pub const LCMP: Self = Self(148);
    pub const FCMPL: Self = Self(149);
    pub const FCMPG: Self = Self(150);
    pub const DCMPL: Self = Self(151);
    pub const DCMPG: Self = Self(152);
    pub const IFEQ: Self = Self(153);
    pub const IFNE: Self = Self(154);
    pub const IFLT: Self = Self(155);
    pub const IFGE: Self = Self(156);
    pub const IFGT: Self = Self(157);
    pub const IFLE: Self = Self(158);
    pub const IF_ICMPEQ: Self = Self(159);
    pub const IF_ICMPNE: Self = Self(160);
    pub const IF_ICMPLT: Self = Self(161);
    pub const IF_ICMPGE: Self = Self(162);
    pub const IF_ICMPGT: Self = Self(163);
    pub const IF_ICMPLE: Self = Self(164);
    pub const IF_ACMPEQ: Self = Self(165);
    pub const IF_ACMPNE: Self = Self(166);
    pub const GOTO: Self = Self(167);
    pub const JSR: Self = Self(168);
    pub const RET: Self = Self(169);
    pub const TABLESWITCH: Self = Self(170);
    pub const LOOKUPSWITCH: Self = Self(171);
    pub const IRETURN: Self = Self(172);
    pub const LRETURN: Self = Self(173);
    pub const FRETURN: Self = Self(174);
    pub const DRETURN: Self = Self(175);
    pub const ARETURN: Self = Self(176);
    pub const RETURN: Self = Self(177);
    pub const GETSTATIC: Self = Self(178);
    pub const PUTSTATIC: Self = Self(179);
    pub const GETFIELD: Self = Self(180);
    pub const PUTFIELD: Self = Self(181);
    pub const INVOKEVIRTUAL: Self = Self(182);
    pub const INVOKESPECIAL: Self = Self(183);
    pub const INVOKESTATIC: Self = Self(184);
    pub const INVOKEINTERFACE: Self = Self(185);
    pub const INVOKEDYNAMIC: Self = Self(186);
    pub const NEW: Self = Self(187);
    pub const NEWARRAY: Self = Self(188);
    pub const ANEWARRAY: Self = Self(189);
    pub const ARRAYLENGTH: Self = Self(190);
    pub const ATHROW: Self = Self(191);
    pub const CHECKCAST: Self = Self(192);
    pub const INSTANCEOF: Self = Self(193);
    pub const MONITORENTER: Self = Self(194);
    pub const MONITOREXIT: Self = Self(195);
    pub const WIDE: Self = Self(196);
    pub const MULTIANEWARRAY: Self = Self(197);
    pub const IFNULL: Self = Self(198);
    pub const IFNONNULL: Self = Self(199);
    pub const GOTO_W: Self = Self(200);
    pub const JSR_W: Self = Self(201);
}

/// Name, operands, number of popped words, number of pushed words.
#[rustfmt::skip]
const TABLE: [(&str, Operands, u8, u8); 202] = {
    use Operands::{
        Branch, Byte, ByteIndex, Dynamic, Iinc, Index, Interface, Local, LookupSwitch, MultiArray, NewArray, None, Short,
        TableSwitch, Wide, WideBranch,
    };
    [
        ("nop", None, 0, 0), ("aconst_null", None, 0, 1), ("iconst_m1", None, 0, 1), ("iconst_0", None, 0, 1),
        ("iconst_1", None, 0, 1), ("iconst_2", None, 0, 1), ("iconst_3", None, 0, 1), ("iconst_4", None, 0, 1),
        ("iconst_5", None, 0, 1), ("lconst_0", None, 0, 2), ("lconst_1", None, 0, 2), ("fconst_0", None, 0, 1),
        ("fconst_1", None, 0, 1), ("fconst_2", None, 0, 1), ("dconst_0", None, 0, 2), ("dconst_1", None, 0, 2),
        ("bipush", Byte, 0, 1), ("sipush", Short, 0, 1), ("ldc", ByteIndex, 0, 1), ("ldc_w", Index, 0, 1),
        ("ldc2_w", Index, 0, 2), ("iload", Local, 0, 1), ("lload", Local, 0, 2), ("fload", Local, 0, 1),
        ("dload", Local, 0, 2), ("aload", Local, 0, 1), ("iload_0", None, 0, 1), ("iload_1", None, 0, 1),
        ("iload_2", None, 0, 1), ("iload_3", None, 0, 1), ("lload_0", None, 0, 2), ("lload_1", None, 0, 2),
        ("lload_2", None, 0, 2), ("lload_3", None, 0, 2), ("fload_0", None, 0, 1), ("fload_1", None, 0, 1),
        ("fload_2", None, 0, 1), ("fload_3", None, 0, 1), ("dload_0", None, 0, 2), ("dload_1", None, 0, 2),
        ("dload_2", None, 0, 2), ("dload_3", None, 0, 2), ("aload_0", None, 0, 1), ("aload_1", None, 0, 1),
        ("aload_2", None, 0, 1), ("aload_3", None, 0, 1), ("iaload", None, 2, 1), ("laload", None, 2, 2),
        ("faload", None, 2, 1), ("daload", None, 2, 2), ("aaload", None, 2, 1), ("baload", None, 2, 1),
        ("caload", None, 2, 1), ("saload", None, 2, 1), ("istore", Local, 1, 0), ("lstore", Local, 2, 0),
        ("fstore", Local, 1, 0), ("dstore", Local, 2, 0), ("astore", Local, 1, 0), ("istore_0", None, 1, 0),
        ("istore_1", None, 1, 0), ("istore_2", None, 1, 0), ("istore_3", None, 1, 0), ("lstore_0", None, 2, 0),
        ("lstore_1", None, 2, 0), ("lstore_2", None, 2, 0), ("lstore_3", None, 2, 0), ("fstore_0", None, 1, 0),
        ("fstore_1", None, 1, 0), ("fstore_2", None, 1, 0), ("fstore_3", None, 1, 0), ("dstore_0", None, 2, 0),
        ("dstore_1", None, 2, 0), ("dstore_2", None, 2, 0), ("dstore_3", None, 2, 0), ("astore_0", None, 1, 0),
        ("astore_1", None, 1, 0), ("astore_2", None, 1, 0), ("astore_3", None, 1, 0), ("iastore", None, 3, 0),
        ("lastore", None, 4, 0), ("fastore", None, 3, 0), ("dastore", None, 4, 0), ("aastore", None, 3, 0),
        ("bastore", None, 3, 0), ("castore", None, 3, 0), ("sastore", None, 3, 0), ("pop", None, 1, 0),
        ("pop2", None, 2, 0), ("dup", None, 1, 2), ("dup_x1", None, 2, 3), ("dup_x2", None, 3, 4),
        ("dup2", None, 2, 4), ("dup2_x1", None, 3, 5), ("dup2_x2", None, 4, 6), ("swap", None, 2, 2),
        ("iadd", None, 2, 1), ("ladd", None, 4, 2), ("fadd", None, 2, 1), ("dadd", None, 4, 2), ("isub", None, 2, 1),
        ("lsub", None, 4, 2), ("fsub", None, 2, 1), ("dsub", None, 4, 2), ("imul", None, 2, 1), ("lmul", None, 4, 2),
        ("fmul", None, 2, 1), ("dmul", None, 4, 2), ("idiv", None, 2, 1), ("ldiv", None, 4, 2), ("fdiv", None, 2, 1),
        ("ddiv", None, 4, 2), ("irem", None, 2, 1), ("lrem", None, 4, 2), ("frem", None, 2, 1), ("drem", None, 4, 2),
        ("ineg", None, 1, 1), ("lneg", None, 2, 2), ("fneg", None, 1, 1), ("dneg", None, 2, 2), ("ishl", None, 2, 1),
        ("lshl", None, 3, 2), ("ishr", None, 2, 1), ("lshr", None, 3, 2), ("iushr", None, 2, 1),
        ("lushr", None, 3, 2), ("iand", None, 2, 1), ("land", None, 4, 2), ("ior", None, 2, 1), ("lor", None, 4, 2),
        ("ixor", None, 2, 1), ("lxor", None, 4, 2), ("iinc", Iinc, 0, 0), ("i2l", None, 1, 2), ("i2f", None, 1, 1),
        ("i2d", None, 1, 2), ("l2i", None, 2, 1), ("l2f", None, 2, 1), ("l2d", None, 2, 2), ("f2i", None, 1, 1),
        ("f2l", None, 1, 2), ("f2d", None, 1, 2), ("d2i", None, 2, 1), ("d2l", None, 2, 2), ("d2f", None, 2, 1),
        ("i2b", None, 1, 1), ("i2c", None, 1, 1), ("i2s", None, 1, 1), ("lcmp", None, 4, 1), ("fcmpl", None, 2, 1),
        ("fcmpg", None, 2, 1), ("dcmpl", None, 4, 1), ("dcmpg", None, 4, 1), ("ifeq", Branch, 1, 0),
        ("ifne", Branch, 1, 0), ("iflt", Branch, 1, 0), ("ifge", Branch, 1, 0), ("ifgt", Branch, 1, 0),
        ("ifle", Branch, 1, 0), ("if_icmpeq", Branch, 2, 0), ("if_icmpne", Branch, 2, 0), ("if_icmplt", Branch, 2, 0),
        ("if_icmpge", Branch, 2, 0), ("if_icmpgt", Branch, 2, 0), ("if_icmple", Branch, 2, 0),
        ("if_acmpeq", Branch, 2, 0), ("if_acmpne", Branch, 2, 0), ("goto", Branch, 0, 0), ("jsr", Branch, 0, 1),
        ("ret", Local, 0, 0), ("tableswitch", TableSwitch, 1, 0), ("lookupswitch", LookupSwitch, 1, 0),
        ("ireturn", None, 1, 0), ("lreturn", None, 2, 0), ("freturn", None, 1, 0), ("dreturn", None, 2, 0),
        ("areturn", None, 1, 0), ("return", None, 0, 0), ("getstatic", Index, VARIES, VARIES),
        ("putstatic", Index, VARIES, VARIES), ("getfield", Index, VARIES, VARIES),
        ("putfield", Index, VARIES, VARIES), ("invokevirtual", Index, VARIES, VARIES),
        ("invokespecial", Index, VARIES, VARIES), ("invokestatic", Index, VARIES, VARIES),
        ("invokeinterface", Interface, VARIES, VARIES), ("invokedynamic", Dynamic, VARIES, VARIES),
        ("new", Index, 0, 1), ("newarray", NewArray, 1, 1), ("anewarray", Index, 1, 1), ("arraylength", None, 1, 1),
        ("athrow", None, 1, 0), ("checkcast", Index, 1, 1), ("instanceof", Index, 1, 1), ("monitorenter", None, 1, 0),
        ("monitorexit", None, 1, 0), ("wide", Wide, 0, 0), ("multianewarray", MultiArray, VARIES, VARIES),
        ("ifnull", Branch, 1, 0), ("ifnonnull", Branch, 1, 0), ("goto_w", WideBranch, 0, 0),
        ("jsr_w", WideBranch, 0, 1),
    ]
};
