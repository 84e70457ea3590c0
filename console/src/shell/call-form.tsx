import { type ReactNode, useState } from 'react'
import { ApiError } from '../api/client.ts'
import { Button } from '../design/button.tsx'
import { Form } from '../design/form.tsx'
import style from './call-form.module.css'
import { Failure } from './failure.tsx'

/** Returns what is wrong with a field, if the call failed for it. */
export type ErrorOf = (field: string) => string | undefined

export type CallFormProps = {
  /** A mutation that takes what is sent from the fields. */
  readonly call: { readonly error: Error | null; readonly isPending: boolean; readonly mutate: () => void }
  /** The fields, each with its error. Asks for all errors at once, not in a component inside: those would be shown twice. */
  readonly children: (errorOf: ErrorOf) => ReactNode
  /** The verb on the button, with its object: `Create key`. */
  readonly action: string
  readonly disabled?: boolean
  /** Only shows the fields: there is no button. */
  readonly readOnly?: boolean
}

/**
 * Fields of one call of the API. What is wrong stands at its field until that is edited, or above the button if no field here shows it,
 * until any is edited.
 */
export function CallForm({ call, children, action, disabled = false, readOnly = false }: CallFormProps) {
  const { error } = call
  const [corrected, setCorrected] = useState<Error | null>(null)
  let isShown = false
  const fields = children((field) => {
    const text = error instanceof ApiError ? error.fieldError(field) : undefined
    isShown ||= text !== undefined
    return text
  })
  return (
    <Form className={style.form} onSubmit={() => call.mutate()} onChange={() => setCorrected(error)}>
      {fields}
      {error !== null && !isShown && error !== corrected && <Failure error={error} />}
      {!readOnly && (
        <div>
          <Button type="submit" look="primary" busy={call.isPending} disabled={disabled}>
            {action}
          </Button>
        </div>
      )}
    </Form>
  )
}
