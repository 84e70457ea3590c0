import { accountActions, accountPlaces, operatorActions, operatorPlaces, type PlaceGroup } from './navigation.ts'
import { useHere, useIsAtLeast } from './session.tsx'

/** A group of places, and the address that they are below. */
export type OpenGroup = PlaceGroup & { readonly base: string }

/** Returns the groups that the person can open here, without the places that their role does not open. */
export function useOpenPlaces(): readonly OpenGroup[] {
  return useOpen(accountPlaces, operatorPlaces)
}

/** Returns the same of what one can begin. */
export function useOpenActions(): readonly OpenGroup[] {
  return useOpen([{ label: 'Begin', places: accountActions }], [{ label: 'Begin', places: operatorActions }])
}

function useOpen(ofAccount: readonly PlaceGroup[], ofOperators: readonly PlaceGroup[]): readonly OpenGroup[] {
  const { session, account } = useHere()
  const isAtLeast = useIsAtLeast()
  const inAccount = account === undefined ? [] : below(`/in/${account.account_id}`, ofAccount)
  const operating = session.person.is_operator ? below('/operate', ofOperators) : []
  return [...inAccount, ...operating]
    .map((group) => ({ ...group, places: group.places.filter(({ role }) => role === undefined || isAtLeast(role)) }))
    .filter(({ places }) => places.length > 0)
}

function below(base: string, groups: readonly PlaceGroup[]): readonly OpenGroup[] {
  return groups.map((group) => ({ ...group, base }))
}
