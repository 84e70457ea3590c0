const tabs = ['set-up', 'validation', 'settings'] as const
export type DestinationTab = (typeof tabs)[number]

/** `how`: the set-up by commands, unless it says policies. */
export type DestinationSearch = { readonly tab?: DestinationTab; readonly how?: 'policies' }

export function destinationSearch(search: Record<string, unknown>): DestinationSearch {
  const tab = tabs.find((each) => each === search['tab'])
  return { ...(tab === undefined ? {} : { tab }), ...(search['how'] === 'policies' ? { how: 'policies' } : {}) }
}
