import { Lock } from 'lucide-react'
import type { ReactNode } from 'react'
import { EmptyState } from '../design/empty-state.tsx'
import { useMay } from './session.tsx'

type MembersOnlyProps = {
  readonly children?: ReactNode
  /** The link to what viewers may see of it. */
  readonly instead?: ReactNode
}

/** Shows its children to members. Viewers read why not, and whom to ask: the API would refuse them. */
export function MembersOnly({ children, instead }: MembersOnlyProps) {
  if (useMay('member')) return children
  return (
    <EmptyState icon={<Lock />} title="Only members of the account can do this" action={instead}>
      <p>You are a viewer here. Ask an owner of the account to make you a member.</p>
    </EmptyState>
  )
}
