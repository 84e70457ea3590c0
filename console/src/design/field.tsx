import { Field as BaseField } from '@base-ui/react/field'
import { type ComponentProps, type ReactNode, useState } from 'react'
import style from './field.module.css'

export type FieldProps = {
  readonly label: ReactNode
  /** Why one would set it, or what it does. */
  readonly hint?: ReactNode
  /** Error message of the API. */
  readonly error?: string | undefined
}

/** An error is about the value that was sent: returns it until the field has another. */
export function useErrorOf(error: string | undefined, value: unknown): string | undefined {
  const [about, setAbout] = useState({ error, value })
  if (about.error !== error) setAbout({ error, value })
  return about.error !== error || Object.is(about.value, value) ? error : undefined
}

/** A label, a control, a hint and an error, tied together for screen readers. */
export function Field({ label, hint, error, children }: FieldProps & { readonly children: ReactNode }) {
  return (
    <BaseField.Root className={style.field} invalid={error !== undefined}>
      <BaseField.Label className={style.label}>{label}</BaseField.Label>
      {children}
      <Notes hint={hint} error={error} />
    </BaseField.Root>
  )
}

/** Hint and error below a control. */
export function Notes({ hint, error }: Pick<FieldProps, 'hint' | 'error'>) {
  return (
    <>
      {hint !== undefined && <BaseField.Description className={style.hint}>{hint}</BaseField.Description>}
      {error !== undefined && (
        <BaseField.Error className={style.error} match>
          {error}
        </BaseField.Error>
      )}
    </>
  )
}

type TextFieldProps = FieldProps &
  Omit<ComponentProps<'input'>, 'className' | 'onChange'> & { readonly onChange?: (value: string) => void }

export function TextField({ label, hint, error, onChange, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={useErrorOf(error, rest.value)}>
      <BaseField.Control {...rest} className={style.input} onValueChange={(value) => onChange?.(value)} />
    </Field>
  )
}

type TextAreaProps = FieldProps &
  Omit<ComponentProps<'textarea'>, 'className' | 'onChange' | 'value'> & {
    readonly value: string
    readonly onChange: (value: string) => void
  }

export function TextArea({ label, hint, error, onChange, value, ...rest }: TextAreaProps) {
  return (
    <Field label={label} hint={hint} error={useErrorOf(error, value)}>
      <BaseField.Control
        value={value}
        onValueChange={onChange}
        className={style.input}
        render={<textarea spellCheck={false} {...rest} className={style.textarea} />}
      />
    </Field>
  )
}

export type Choice<T extends string> = { readonly value: T; readonly label: string }

type SelectFieldProps<T extends string> = FieldProps & {
  readonly value: T
  readonly choices: readonly Choice<T>[]
  readonly onChange: (value: T) => void
  readonly disabled?: boolean
}

/** The list of the browser: it works on every device, and with every screen reader. */
export function SelectField<T extends string>({ label, hint, error, value, choices, onChange, disabled }: SelectFieldProps<T>) {
  const choose = (chosen: string) => {
    const choice = choices.find((each) => each.value === chosen)
    if (choice !== undefined) onChange(choice.value)
  }
  return (
    <Field label={label} hint={hint} error={useErrorOf(error, value)}>
      <BaseField.Control
        value={value}
        onValueChange={choose}
        disabled={disabled === true}
        className={style.input}
        render={
          <select>
            {choices.map((choice) => (
              <option key={choice.value} value={choice.value}>
                {choice.label}
              </option>
            ))}
          </select>
        }
      />
    </Field>
  )
}
