import { useMutation } from '@tanstack/react-query'
import { acceptInvitation } from '../../api/people.ts'
import type { Session } from '../../api/session.ts'
import { Button } from '../../design/button.tsx'
import { Failure } from '../../shell/failure.tsx'
import style from './sign-in-page.module.css'

type JoinAccountProps = {
  readonly link: string
  readonly person: Session['person']
  readonly onDone: (to: string) => Promise<void>
  /** The link is for somebody new. */
  readonly onOther: () => void
}

/** For somebody who is signed in already: the invitation adds an account to them. */
export function JoinAccount({ link, person, onDone, onOther }: JoinAccountProps) {
  const join = useMutation({
    mutationFn: async () => {
      const { account_id } = await acceptInvitation(link)
      await onDone(`/in/${account_id}`)
    },
  })
  return (
    <div className={style.form}>
      <h1 className={style.title}>Join one more account</h1>
      <p className={style.about}>
        You are signed in as <strong>{person.email ?? person.name}</strong>. The invitation adds its account to those that you
        have.
      </p>
      {join.isError && <Failure error={join.error} />}
      <Button look="primary" wide busy={join.isPending} onClick={() => join.mutate()}>
        Join as {person.name}
      </Button>
      <Button look="quiet" wide onClick={onOther}>
        Use the link as somebody else
      </Button>
    </div>
  )
}
