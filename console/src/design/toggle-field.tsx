/** Apart from the other fields: the first screens have no toggles, and do not load them. */
import { Checkbox as BaseCheckbox } from '@base-ui/react/checkbox'
import { Field as BaseField } from '@base-ui/react/field'
import { Switch as BaseSwitch } from '@base-ui/react/switch'
import { Check } from 'lucide-react'
import style from './field.module.css'
import { type FieldProps, Notes } from './field.tsx'

type ToggleProps = FieldProps & {
  readonly checked: boolean
  readonly onChange: (checked: boolean) => void
  readonly disabled?: boolean
}

export function CheckboxField({ label, hint, error, checked, onChange, disabled = false }: ToggleProps) {
  return (
    <BaseField.Root className={style.toggle} invalid={error !== undefined}>
      <BaseCheckbox.Root checked={checked} onCheckedChange={onChange} disabled={disabled} className={style.checkbox}>
        <BaseCheckbox.Indicator className={style.check}>
          <Check aria-hidden="true" />
        </BaseCheckbox.Indicator>
      </BaseCheckbox.Root>
      <BaseField.Label className={style.toggleLabel}>{label}</BaseField.Label>
      <Notes hint={hint} error={error} />
    </BaseField.Root>
  )
}

export function SwitchField({ label, hint, error, checked, onChange, disabled = false }: ToggleProps) {
  return (
    <BaseField.Root className={style.toggle} invalid={error !== undefined}>
      <BaseSwitch.Root checked={checked} onCheckedChange={onChange} disabled={disabled} className={style.switch}>
        <BaseSwitch.Thumb className={style.thumb} />
      </BaseSwitch.Root>
      <BaseField.Label className={style.toggleLabel}>{label}</BaseField.Label>
      <Notes hint={hint} error={error} />
    </BaseField.Root>
  )
}
