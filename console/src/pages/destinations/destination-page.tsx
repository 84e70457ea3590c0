import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { type Destination, destinationQuery, type ObjectStore, objectStoreQuery } from '../../api/destinations.ts'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { TabBar, tabClass } from '../../design/tabs.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { LoadFailure } from '../../shell/load-failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import type { DestinationTab } from './destination-search.ts'
import { DestinationsLink } from './destinations-link.tsx'
import { SetUpTab } from './set-up-tab.tsx'
import { SettingsTab } from './settings-tab.tsx'
import { ValidationTab } from './validation-tab.tsx'

const route = getRouteApi('/signed-in/in/$account/destinations/$destination')

export function DestinationPage() {
  const account = useAccount()
  const { destination: id } = route.useParams()
  const destination = useQuery(destinationQuery(account, id))
  const store = useQuery(objectStoreQuery(account))
  const failed = [destination, store].find(({ isError }) => isError)
  if (failed !== undefined) {
    return (
      <Page title="Destination" trail={<DestinationsLink />}>
        <LoadFailure
          query={failed}
          noun="destination"
          back={
            <ButtonLink to="/in/$account/destinations" params={{ account }}>
              Go to the destinations
            </ButtonLink>
          }
        />
      </Page>
    )
  }
  if (destination.data === undefined || store.data === undefined) {
    return (
      <Page title="Destination" trail={<DestinationsLink />}>
        <Skeleton rows={6} height="figure" />
      </Page>
    )
  }
  return <Loaded destination={destination.data} store={store.data} />
}

function Loaded({ destination, store }: { readonly destination: Destination; readonly store: ObjectStore }) {
  const { tab = destination.status === 'pending' && store.kind !== 'directory' ? 'set-up' : 'validation' } = route.useSearch()
  const { name, status, bucket, prefix, ref_count } = destination
  const used =
    ref_count === 0
      ? 'No endpoint delivers here.'
      : `${ref_count} ${ref_count === 1 ? 'endpoint delivers' : 'endpoints deliver'} here.`
  return (
    <Page
      trail={<DestinationsLink />}
      title={
        <>
          {name}
          <StatusBadge status={status} />
        </>
      }
      about={
        <>
          <code>{prefix === '' ? bucket : `${bucket}/${prefix}`}</code> · {used}
        </>
      }
    >
      <TabBar label="Destination">
        {store.kind !== 'directory' && <Tab name="set-up" current={tab} label="Set-up" />}
        <Tab name="validation" current={tab} label="Validation" />
        <Tab name="settings" current={tab} label="Settings" />
      </TabBar>
      {tab === 'set-up' && <SetUpTab destination={destination} store={store} />}
      {tab === 'validation' && <ValidationTab destination={destination} />}
      {tab === 'settings' && <SettingsTab key={destination.id} destination={destination} store={store} />}
    </Page>
  )
}

function Tab({ name, current, label }: { readonly name: DestinationTab; readonly current: string; readonly label: string }) {
  const params = route.useParams()
  return (
    <Link
      to="/in/$account/destinations/$destination"
      params={params}
      search={{ tab: name }}
      className={tabClass}
      aria-current={name === current ? 'page' : undefined}
    >
      {label}
    </Link>
  )
}
