//! Which device tensors live on, by name.

use burn::tensor::Device;

use crate::error::Result;
use crate::heads::setting;

/// The device of a name.
pub fn parse(name: &str) -> Result<Device> {
    match name {
        "cpu" => Ok(Device::flex()),
        #[cfg(feature = "cuda")]
        "cuda" => Ok(Device::cuda(burn::tensor::DeviceIndex::Default)),
        #[cfg(feature = "rocm")]
        "rocm" => Ok(Device::rocm(burn::tensor::DeviceIndex::Default)),
        #[cfg(feature = "metal")]
        "metal" => Ok(Device::metal(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "vulkan")]
        "vulkan" => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "wgpu")]
        "wgpu" => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        other => Err(setting(
            "device",
            "a device that this program was built for (`cpu`, or by features `cuda`, `rocm`, `metal`, `vulkan`, `wgpu`)",
            other,
        )),
    }
}
