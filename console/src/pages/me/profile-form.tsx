import { sessionQuery, setUp } from '../../api/session.ts'
import { TextField } from '../../design/field.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useHere } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { useFields } from '../../shell/use-fields.ts'

export function ProfileForm() {
  const { person } = useHere().session
  const { values, field } = useFields({ name: person.name, email: person.email ?? '' })
  const { name, email } = values
  const save = useChange({
    call: () => setUp({ ...(name === person.name ? {} : { name }), ...(email === (person.email ?? '') ? {} : { email }) }),
    changes: [sessionQuery.queryKey],
    said: 'Profile saved',
  })
  return (
    <CallForm call={save} action="Save profile">
      {(_errorOf) => (
        <>
          <TextField label="Name" {...field('name')} required maxLength={128} autoComplete="name" />
          <TextField
            label="E-mail"
            type="email"
            {...field('email')}
            autoComplete="username"
            required={person.email !== null}
            hint="You sign in with it, if you set a password."
          />
        </>
      )}
    </CallForm>
  )
}
