//! What system deployers decide beside timers: who validates.

use super::{Refusal, Run};
use crate::{
    chain::{
        event::{ValidatorAdded, ValidatorRemoved},
        genesis::Validator,
    },
    primitives::{Address, Height},
};

impl Run<'_> {
    pub(super) fn add_validator(
        &mut self,
        sender: Address,
        validator: &Validator,
    ) -> Result<(), Refusal> {
        self.check_system(sender)?;
        let (epoch, from) = self.next_epoch();
        self.state.validators.add(epoch, validator.clone())?;
        self.emit(ValidatorAdded { validator: validator.pubkey.address(), epoch, from });
        Ok(())
    }

    pub(super) fn remove_validator(
        &mut self,
        sender: Address,
        validator: Address,
    ) -> Result<(), Refusal> {
        self.check_system(sender)?;
        let (epoch, from) = self.next_epoch();
        self.state.validators.remove(epoch, validator)?;
        self.emit(ValidatorRemoved { validator, epoch, from });
        Ok(())
    }

    /// The consensus epoch after this block's, and its first height.
    fn next_epoch(&self) -> (u64, Height) {
        let epoch = self.state.epoch_at(self.height()) + 1;
        (epoch, Height::new(epoch * self.state.params.epoch_blocks))
    }

    pub(super) fn check_system(&self, sender: Address) -> Result<(), Refusal> {
        match self.parent.params.system_deployers.contains(&sender) {
            true => Ok(()),
            false => Err(Refusal::NotSystemDeployer(sender)),
        }
    }
}
