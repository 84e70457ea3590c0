import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { type Account, accountQuery, accountsKey, changeAccount, quotaUseQuery } from '../../api/accounts.ts'
import { isMissing } from '../../api/intervals.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copy-button.tsx'
import { Bullets, Card, Facts, Inline, Page, Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { Missing } from '../../shell/load-failure.tsx'
import { AccountStatus } from './accounts-page.tsx'
import { BucketForm } from './bucket-form.tsx'
import { InviteToAccount } from './invite-to-account.tsx'
import { QuotaForm } from './quota-form.tsx'
import { QuotaTable } from './quota-table.tsx'

/** Keeps the height of a line whose text is not known yet. */
const held = '\u00a0'

const route = getRouteApi('/signed-in/outside/operate/accounts/$id')

/** One tenant: what it may use, what it uses, and whether it may. */
export function AccountPage() {
  const { id } = route.useParams()
  const account = useQuery(accountQuery(id))
  const use = useQuery(quotaUseQuery(id))
  const trail = <Link to="/operate/accounts">Accounts</Link>
  if (isMissing(account.error)) {
    return (
      <Page trail={trail} title="Account">
        <Missing noun="account" back={<ButtonLink to="/operate/accounts">Go to the accounts</ButtonLink>} />
      </Page>
    )
  }
  return (
    <Page
      trail={trail}
      title={account.data?.name ?? held}
      actions={
        account.data === undefined ? (
          <>
            <Button disabled>Suspend account</Button>
            <Button disabled>Invite somebody</Button>
          </>
        ) : (
          <>
            <Suspension account={account.data} />
            <InviteToAccount account={account.data}>Invite somebody</InviteToAccount>
          </>
        )
      }
    >
      {account.isError && <Failure error={account.error} onRetry={() => void account.refetch()} />}
      <Card>
        <AccountFacts id={id} account={account.data} />
      </Card>
      <Section title="Quotas" about="What the account uses of what it may use. The nodes of a region share its rate.">
        {use.isError && <Failure error={use.error} onRetry={() => void use.refetch()} />}
        {use.isPending && <Skeleton rows={6} height="figure" />}
        {use.isSuccess && <QuotaTable use={use.data} />}
      </Section>
      <Section title="Change the limits" about="A limit below what is used takes nothing away: it refuses what is new.">
        <Card>{account.data === undefined ? <Skeleton rows={4} /> : <QuotaForm key={id} account={account.data} />}</Card>
      </Section>
      {account.data?.allowed_buckets != null && (
        <Section
          title="Buckets"
          about="What the account may use with the credentials of this installation. Nodes stop within seconds to use what you remove."
        >
          <Card>
            <BucketForm key={id} id={id} entries={account.data.allowed_buckets} />
          </Card>
        </Section>
      )}
    </Page>
  )
}

/** While the account is loading, each fact has its place. */
function AccountFacts({ id, account }: { readonly id: string; readonly account: Account | undefined }) {
  return (
    <Facts
      facts={[
        ['Status', account === undefined ? held : <AccountStatus key="status" status={account.status} />],
        [
          'Id',
          <Inline key="id">
            <code>{id}</code> <CopyButton text={id} label="Copy the id" wordless />
          </Inline>,
        ],
        ['Weight', account === undefined ? held : `${account.weight}, where accounts compete for a node`],
        ['Created', account === undefined ? held : <Time key="created" at={account.created_at} />],
      ]}
    />
  )
}

function Suspension({ account: { id, name, status } }: { readonly account: Account }) {
  const isActive = status === 'active'
  const verb = isActive ? 'Suspend' : 'Resume'
  return (
    <AskingButton
      title={`${verb} the account “${name}”?`}
      action={`${verb} account`}
      change={{
        call: () => changeAccount(id, { status: isActive ? 'suspended' : 'active' }),
        changes: [accountsKey],
        said: (changed) => (changed.status === 'active' ? `Account “${name}” resumed` : `Account “${name}” suspended`),
      }}
    >
      {isActive ? (
        <Bullets>
          <li>Its new data is refused, and its configuration cannot be changed.</li>
          <li>What it sent before is delivered, and everything can be read.</li>
          <li>You can resume it at any time.</li>
        </Bullets>
      ) : (
        <p>Its data is accepted again, and its configuration can be changed.</p>
      )}
    </AskingButton>
  )
}
