import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { sessionQuery, setUp } from '../../api/session.ts'
import { TextField } from '../../design/field.tsx'
import { say } from '../../design/toast.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useHere } from '../../shell/session.tsx'

export function ProfileForm() {
  const { person } = useHere().session
  const queries = useQueryClient()
  const [name, setName] = useState(person.name)
  const [email, setEmail] = useState(person.email ?? '')
  const save = useMutation({
    mutationFn: () => setUp({ ...(name === person.name ? {} : { name }), ...(email === (person.email ?? '') ? {} : { email }) }),
    onSuccess: async () => {
      await queries.invalidateQueries(sessionQuery)
      say('Profile saved')
    },
  })
  return (
    <CallForm call={save} action="Save profile">
      {(_errorOf) => (
        <>
          <TextField label="Name" value={name} onChange={setName} required maxLength={128} autoComplete="name" />
          <TextField
            label="E-mail"
            type="email"
            value={email}
            onChange={setEmail}
            autoComplete="username"
            required={person.email !== null}
            hint="You sign in with it, if you set a password."
          />
        </>
      )}
    </CallForm>
  )
}
