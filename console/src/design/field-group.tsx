import type { ReactNode } from 'react'
import style from './field.module.css'
import { type FieldProps, useErrorOf } from './field.tsx'

type FieldGroupProps = FieldProps & {
  /** The answer: what is wrong with it stands there until it is another. */
  readonly value?: unknown
  readonly children: ReactNode
}

/** Several controls that answer one question. */
export function FieldGroup({ label, hint, error, value, children }: FieldGroupProps) {
  const problem = useErrorOf(error, value)
  return (
    <fieldset className={style.group}>
      <legend className={style.label}>{label}</legend>
      {hint !== undefined && <div className={style.hint}>{hint}</div>}
      {children}
      {problem !== undefined && (
        <div className={style.error} role="alert">
          {problem}
        </div>
      )}
    </fieldset>
  )
}
