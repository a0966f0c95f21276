//! Parameters of a module by name: reading, writing, replacing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use cladist_core::bundle::BundleError;
use cladist_kernels::mapped::{Mapped, bytes_of};
use rayon::prelude::*;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors, View};

use crate::error::Result;
use crate::fused::{Values, is_cpu};

/// Where a visitor or mapper is: `head.weight`, `encoder.layers.3.up_bias`.
#[derive(Debug, Default)]
pub(crate) struct Place(Vec<Option<String>>);

impl Place {
    /// Enters a field. Variants of an enum add nothing to a name.
    pub(crate) fn enter(&mut self, name: &str, container: &str) {
        self.0.push((!container.starts_with("Enum")).then(|| name.to_owned()));
    }

    pub(crate) fn leave(&mut self) {
        self.0.pop();
    }

    pub(crate) fn name(&self) -> String {
        self.0.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(".")
    }
}

/// The two methods that keep a [`Place`] up to date.
macro_rules! follow_place {
    () => {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.place.enter(name, container);
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.place.leave();
        }
    };
}
pub(crate) use follow_place;

/// A tensor's values.
pub(crate) fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    if is_cpu(&tensor.device()) {
        return Values::of(tensor).to_vec();
    }
    tensor.inner().into_data().convert::<f32>().try_into_vec().unwrap_or_default()
}

/// Shapes and values by name.
pub(crate) type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Every parameter of a module.
pub(crate) fn named(module: &impl Module) -> Tensors {
    struct Collect {
        place: Place,
        found: Tensors,
    }
    impl ModuleVisitor for Collect {
        follow_place!();
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let tensor = param.val();
            let shape = tensor.dims().to_vec();
            self.found.insert(self.place.name(), (shape, to_vec(tensor)));
        }
    }
    let mut collect = Collect { place: Place::default(), found: BTreeMap::new() };
    module.visit(&mut collect);
    collect.found
}

/// The names of a module's parameters, in the order of its fields.
pub(crate) fn names(module: &impl Module) -> Vec<String> {
    struct Collect {
        place: Place,
        found: Vec<String>,
    }
    impl ModuleVisitor for Collect {
        follow_place!();
        fn visit_float<const D: usize>(&mut self, _: &Param<Tensor<D>>) {
            self.found.push(self.place.name());
        }
    }
    let mut collect = Collect { place: Place::default(), found: Vec::new() };
    module.visit(&mut collect);
    collect.found
}

/// The module with its parameters replaced; a problem if one is not there or has another shape.
pub(crate) fn replace<M: Module>(module: M, mut values: Tensors) -> Result<M, String> {
    struct Replace<'a> {
        place: Place,
        values: &'a mut Tensors,
        problem: Option<String>,
    }
    impl ModuleMapper for Replace<'_> {
        follow_place!();
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let name = self.place.name();
            let shape = param.val().dims().to_vec();
            match self.values.remove(&name) {
                Some((found, values)) if found == shape => param.map(|old| {
                    let tracked = old.is_require_grad();
                    let new = Tensor::from_data(TensorData::new(values, shape), &old.device());
                    new.set_require_grad(tracked)
                }),
                Some((found, _)) => {
                    self.problem = Some(format!("tensor `{name}` has shape {found:?}, not {shape:?}"));
                    param
                }
                None => {
                    self.problem = Some(format!("it has no tensor `{name}`"));
                    param
                }
            }
        }
    }
    let mut mapper = Replace { place: Place::default(), values: &mut values, problem: None };
    let module = module.map(&mut mapper);
    match mapper.problem {
        Some(problem) => Err(problem),
        None => match values.keys().next() {
            Some(name) => Err(format!("tensor `{name}` has no place in the model")),
            None => Ok(module),
        },
    }
}

/// Values of a tensor in a file, made little-endian only as they are written.
pub(crate) enum Numbers<'a> {
    F32(&'a [f32]),
    U32(&'a [u32]),
}

struct Array<'a> {
    shape: &'a [usize],
    values: &'a Numbers<'a>,
}

impl View for Array<'_> {
    fn dtype(&self) -> Dtype {
        match self.values {
            Numbers::F32(_) => Dtype::F32,
            Numbers::U32(_) => Dtype::U32,
        }
    }
    fn shape(&self) -> &[usize] {
        self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        match self.values {
            Numbers::F32(values) => match bytes_of(values) {
                Some(bytes) => Cow::Borrowed(bytes),
                None => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            },
            Numbers::U32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }
    fn data_len(&self) -> usize {
        4 * self.shape.iter().product::<usize>()
    }
}

/// Writes a safetensors file without a copy of the values.
pub(crate) fn write_file(path: &Path, tensors: &[(&str, Vec<usize>, Numbers<'_>)]) -> Result<()> {
    let views = tensors.iter().map(|(name, shape, values)| (*name, Array { shape, values }));
    safetensors::serialize_to_file(views, None, path).map_err(|error| {
        let source = match error {
            SafeTensorError::IoError(source) => source,
            other => std::io::Error::other(other.to_string()),
        };
        cladist_core::Error::io("write", path)(source).into()
    })
}

/// The same of named values.
pub(crate) fn save(path: &Path, parameters: &Tensors) -> Result<()> {
    let tensors: Vec<_> = (parameters.iter())
        .map(|(name, (shape, values))| (name.as_str(), shape.clone(), Numbers::F32(values)))
        .collect();
    write_file(path, &tensors)
}

struct Bytes<'a> {
    shape: &'a [usize],
    bytes: &'a [u8],
}

impl View for Bytes<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }
    fn shape(&self) -> &[usize] {
        self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// A safetensors file of f32 tensors given as little-endian bytes.
pub(crate) fn safetensors(tensors: &[(String, Vec<usize>, Vec<u8>)]) -> Result<Vec<u8>> {
    let views = tensors.iter().map(|(name, shape, bytes)| (name.as_str(), Bytes { shape, bytes }));
    safetensors::serialize(views, None).map_err(|error| {
        let source = std::io::Error::other(error.to_string());
        cladist_core::Error::io("write", Path::new("model.safetensors"))(source).into()
    })
}

/// A safetensors file of named values.
pub(crate) fn write(parameters: &Tensors) -> Result<Vec<u8>> {
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = parameters
        .iter()
        .map(|(name, (shape, values))| {
            (name.clone(), shape.clone(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
        })
        .collect();
    safetensors(&tensors)
}

/// Shape and values of every tensor of a file of f32 tensors.
pub(crate) fn read(path: &Path) -> Result<Tensors> {
    let bytes = std::fs::read(path).map_err(cladist_core::Error::io("read", path))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| unfit_by(path, error))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        if view.dtype() != Dtype::F32 {
            return Err(unfit(path, format!("tensor `{name}` is of type {:?}", view.dtype())));
        }
        let values = view.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        tensors.insert(name.to_owned(), (view.shape().to_vec(), values));
    }
    Ok(tensors)
}

/// Refuses a bundle with numbers that are not finite in any of its tensors: a model that has them answers nothing, without a
/// word. No tensor of a bundle may have them.
pub(crate) fn check_finite(folder: &Path) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(cladist_core::Error::io("read", folder))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(cladist_core::Error::io("read", folder))?.path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            paths.push(path);
        }
    }
    // The same file is named whatever the order of the folder.
    paths.sort();
    for path in paths {
        let mapped = Mapped::open(&path).map_err(cladist_core::Error::io("read", &path))?;
        let file = SafeTensors::deserialize(mapped.bytes()).map_err(|error| unfit_by(&path, error))?;
        let infinite = |view: &TensorView<'_>| {
            view.dtype() == Dtype::F32
                && !view
                    .data()
                    .par_chunks(1 << 16)
                    .all(|part| part.as_chunks().0.iter().all(|&four| f32::from_le_bytes(four).is_finite()))
        };
        if let Some((name, _)) = file.iter().find(|(_, view)| infinite(view)) {
            return Err(unfit(&path, format!("tensor `{name}` has values that are not finite")));
        }
    }
    Ok(())
}

/// The error for a file whose tensors do not fit a model.
pub(crate) fn unfit(path: &Path, reason: String) -> crate::Error {
    cladist_core::Error::from(BundleError::content(path, reason)).into()
}

/// The same by an error, which is kept.
pub(crate) fn unfit_by(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> crate::Error {
    cladist_core::Error::from(BundleError::content_by(path, source)).into()
}
