import type { ComponentProps, FormEvent } from 'react'

type FormProps = Omit<ComponentProps<'form'>, 'onSubmit'> & { readonly onSubmit: () => void }

/** A form that is handled here: the browser sends it nowhere. */
export function Form({ onSubmit, ...rest }: FormProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return <form {...rest} onSubmit={submit} />
}
