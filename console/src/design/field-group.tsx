import type { ReactNode } from 'react'
import style from './field.module.css'
import type { FieldProps } from './field.tsx'

/** Several controls that answer one question. */
export function FieldGroup({ label, hint, error, children }: FieldProps & { readonly children: ReactNode }) {
  return (
    <fieldset className={style.group}>
      <legend className={style.label}>{label}</legend>
      {hint !== undefined && <div className={style.hint}>{hint}</div>}
      {children}
      {error !== undefined && (
        <div className={style.error} role="alert">
          {error}
        </div>
      )}
    </fieldset>
  )
}
