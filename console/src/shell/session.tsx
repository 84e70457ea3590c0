import { createContext, type ReactNode, useContext } from 'react'
import type { Role, Session } from '../api/session.ts'

/** The signed-in person, in the account of the address. */
export type Here = { readonly session: Session; readonly account: Session['accounts'][number] | undefined }

const HereContext = createContext<Here | null>(null)

export function HereProvider({ here, children }: { readonly here: Here; readonly children: ReactNode }) {
  return <HereContext value={here}>{children}</HereContext>
}

export function useHere(): Here {
  const here = useContext(HereContext)
  if (here === null) throw new Error('useHere outside of the frame')
  return here
}

/** The id of the account, for screens that exist only in one. */
export function useAccount(): string {
  const { account } = useHere()
  if (account === undefined) throw new Error('useAccount on a screen without an account')
  return account.account_id
}

const ranks: Readonly<Record<Role, number>> = { viewer: 0, member: 1, owner: 2 }

/** Whether the person has at least this role here. The API decides; this only hides what it would refuse. */
export function useMay(role: Role): boolean {
  return useIsAtLeast()(role)
}

/** For several roles at once. */
export function useIsAtLeast(): (role: Role) => boolean {
  const { account } = useHere()
  return (role) => account !== undefined && ranks[account.role] >= ranks[role]
}
