import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useLocation, useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { sessionQuery } from '../../api/session.ts'
import { waysQuery } from '../../api/sign-in.ts'
import { Callout } from '../../design/callout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { ByEmail } from './by-email.tsx'
import { ByLink } from './by-link.tsx'
import { JoinAccount } from './join-account.tsx'
import { OtherWays } from './other-ways.tsx'
import { providerProblem } from './provider-problem.ts'
import style from './sign-in-page.module.css'

/** The secret of a one-time link stands after `#`, which no server sees. It may be pasted while this page is open. */
function useLinkInAddress(): string | undefined {
  return useLocation({ select: ({ hash }) => /^link=([0-9A-Za-z]+)$/.exec(hash)?.[1] })
}

export function SignInPage() {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { to = '/', error } = useSearch({ from: '/sign-in' })
  const linkHere = useLinkInAddress()
  const [givenUp, giveUp] = useState<string>()
  const [leftToOther, leaveToOther] = useState<string>()
  const link = linkHere === givenUp ? undefined : linkHere
  const ways = useQuery({ ...waysQuery, enabled: link !== undefined })
  const { data: session, isLoading } = useQuery({
    ...sessionQuery,
    enabled: link !== undefined && ways.data?.is_signed_in === true,
  })
  const enter = async (target = to) => {
    // Nothing of whoever was here before.
    queries.clear()
    await queries.fetchQuery(sessionQuery)
    await navigate({ to: target, replace: true })
  }
  // Without a link nothing waits: the other ways may come while somebody types.
  if (link !== undefined && (ways.isLoading || isLoading)) {
    return (
      <Card>
        <Skeleton rows={5} height="figure" />
      </Card>
    )
  }
  if (link !== undefined && session && link !== leftToOther) {
    return (
      <Card>
        <JoinAccount link={link} person={session.person} onDone={enter} onOther={() => leaveToOther(link)} />
      </Card>
    )
  }
  if (link !== undefined) {
    return (
      <Card>
        <ByLink key={link} link={link} onDone={enter} onGiveUp={() => giveUp(link)} />
      </Card>
    )
  }
  return (
    <Card>
      {error !== undefined && (
        <Callout kind="bad" title="Not signed in">
          <p>{providerProblem(error)}</p>
        </Callout>
      )}
      <ByEmail onDone={enter}>
        <OtherWays to={to} onDone={enter} />
      </ByEmail>
    </Card>
  )
}

function Card({ children }: { readonly children: ReactNode }) {
  return (
    <main className={style.page}>
      <div className={style.card}>
        <img src="/console/icon.svg" alt="Inlet" className={style.mark} width="40" height="40" />
        {children}
      </div>
      <p className={style.promise}>
        Acknowledged means on disk. Committed means readable in your bucket. Nothing lost in between.
      </p>
    </main>
  )
}
