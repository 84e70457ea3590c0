import { useState } from 'react'
import type { ErrorOf } from './call-form.tsx'

/** The values of a form: those that were edited, and `given` for the others. */
export function useFields<Values extends object>(given: Values) {
  const [edited, setEdited] = useState<Partial<Values>>({})
  const values: Values = { ...given, ...edited }
  return {
    values,
    edited,
    reset: () => setEdited({}),
    /** Returns what ties a control to a value, by the errors of `path`. */
    field: <Name extends keyof Values & string>(name: Name, errorOf?: ErrorOf, path: string = name) => ({
      value: values[name],
      onChange: (value: Values[Name]) => setEdited((before) => ({ ...before, [name]: value })),
      error: errorOf?.(path),
    }),
  }
}

export type Fields<Values extends object> = ReturnType<typeof useFields<Values>>
