import type { Account } from './kinds/account.ts'
import type { Change } from './kinds/change.ts'
import type { Problems } from './kinds/problems.ts'
import type { ViewChange } from './kinds/views.ts'

/** Adds a problem for each quota that the changes would exceed. What is deleted comes last, so it makes no room. */
export function checkQuotas(
  { quotas, views }: Account,
  changes: readonly Change[],
  viewChanges: readonly ViewChange[],
  problems: Problems,
): void {
  const created = (kind: Change['kind']) => changes.filter((change) => change.kind === kind && change.action === 'create').length
  const isNew = ({ name, version }: ViewChange) => !(views.get(name) ?? []).some((each) => each.version === version)
  const isFirst = ({ name }: ViewChange) => (views.get(name) ?? []).every(({ status }) => status === 'archived')
  const added = {
    endpoints: created('endpoints'),
    views: viewChanges.filter(isFirst).length,
    view_versions: viewChanges.filter(isNew).length,
    api_keys: created('keys'),
  }
  for (const [name, more] of Object.entries(added)) {
    const { used, limit } = quotas[name as keyof typeof added]
    if (more > 0 && used + more > limit)
      problems.add(
        undefined,
        '',
        `the quota ${name} is ${limit}, and ${used + more} would be used: ask the operator for more, or delete some first`,
      )
  }
}
