/** The files that `inlet init` writes: a set-up that works as it is, for people to change. */

export type InitialFile = { readonly path: string; readonly text: string }

const schemaLine = (up: string, schema = 'setup') => `# yaml-language-server: $schema=${up}/${schema}.schema.json\n`

const endpoints = (
  region: string,
) => `${schemaLine('.')}# An endpoint is an address that records are sent to. Its region is that of the nodes which receive them.
endpoints:
  - name: shop
    region: ${region}
    segment_max_age_seconds: 30

# What the endpoint receives goes through the view in views/orders.yaml.
bindings:
  - { endpoint: shop, view: orders }

# Delivery needs a bucket. Declare it, and add "destination: lake" to the endpoint:
#
# destinations:
#   - { name: lake, bucket: my-bucket, region: eu-central-1, role_arn: "arn:aws:iam::123456789012:role/inlet" }
`

const view = `${schemaLine('..')}# A view makes typed columns of JSON records. inlet test runs orders.test.yaml beside it.
views:
  - name: orders
    description: Orders that somebody pays for
    definition:
      columns:
        - { name: order_id, type: BIGINT, path: $.order.id, required: true }
        - { name: ordered_at, type: TIMESTAMP, path: $.at }
        - { name: amount, type: "DECIMAL(12,2)", path: $.order.amount, cast_failures: dlq }
        - { name: skus, type: "VARCHAR[]", path: "$.items[*].sku" }
      filters:
        - condition: amount > 0
`

const tests = `${schemaLine('..', 'tests')}# Records, and all that becomes of them: rows, dropped records and dead letters. What a case leaves out is none.
# inlet test --update writes what comes out.
cases:
  - name: an order becomes a row
    records:
      - { order: { id: 1, amount: "9.50" }, at: 2026-11-20T08:15:30+01:00, items: [{ sku: a }, { sku: b }] }
    rows:
      - { order_id: 1, ordered_at: 2026-11-20T07:15:30Z, amount: 9.50, skus: [a, b] }

  - name: free orders are dropped
    records:
      - { order: { id: 2, amount: 0 } }
    dropped: 1

  # Text is a record as it is sent: here, broken JSON.
  - name: what cannot be an order is a dead letter
    records:
      - { order: { amount: 1 } }
      - { order: { id: 3, amount: much } }
      - '{"order":'
    dead_letters:
      - { error_code: missing_required, column: order_id }
      - { error_code: cast_failed, column: amount }
      - { error_code: invalid_json }
`

/** `folder` is the directory of the set-up, from where the workflow runs. */
const workflow = (
  folder: string,
) => `# Tests the views of every change, and shows what a pull request would change in the account.
#
# Variables of the repository: INLET_PACKAGE (the address of the package, or its name in a registry), and INLET_URL once there is an Inlet.
# Secret: INLET_READ_KEY, an API key with the scope metrics, which can plan but change nothing.
name: Inlet
on:
  pull_request:
  push:
    branches: [main]

permissions:
  contents: read

jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-node@v5
        with:
          node-version: 24
      - name: Install
        env:
          INLET_PACKAGE: \${{ vars.INLET_PACKAGE }}
        run: npm install --global "$INLET_PACKAGE"
      - name: Test
        run: inlet test ${folder}

  plan:
    needs: test
    # A fork gets no secrets.
    if: vars.INLET_URL != '' && github.event.pull_request.head.repo.full_name == github.repository
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-node@v5
        with:
          node-version: 24
      - name: Install
        env:
          INLET_PACKAGE: \${{ vars.INLET_PACKAGE }}
        run: npm install --global "$INLET_PACKAGE"
      - name: Plan
        env:
          INLET_URL: \${{ vars.INLET_URL }}
          INLET_API_KEY: \${{ secrets.INLET_READ_KEY }}
        # With it the step fails if the plan does, and not only if tee does.
        shell: bash
        run: inlet plan -f ${folder} | tee "$GITHUB_STEP_SUMMARY"
`

export const workflowPath = '.github/workflows/inlet.yaml'

/** Returns the files of the set-up, with paths in its directory. */
export function setupFiles(region: string): readonly InitialFile[] {
  return [
    { path: 'endpoints.yaml', text: endpoints(region) },
    { path: 'views/orders.yaml', text: view },
    { path: 'views/orders.test.yaml', text: tests },
  ]
}

/** Returns the workflow, with its path in the root of the repository. */
export function workflowFile(folder: string): InitialFile {
  return { path: workflowPath, text: workflow(folder) }
}
