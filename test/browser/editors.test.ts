/** Statements and definitions as people type them. What the policy of the console refuses shows as a complaint of the page. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accessibilityFindings, describeInBrowser, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

describeInBrowser('the editors', () => {
  let browser: Browser
  let inlet: Installation
  let ada: Visitor
  let page: Page
  let viewId: string
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('control')])
    ada = await Visitor.first(browser, inlet)
    // A definition that is half written is refused.
    ada.tolerate(/status of 422/)
    page = ada.page
    const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }
    viewId = (await inlet.ok('POST', '/v1/views', { name: 'orders', definition })).id
  })
  afterAll(async () => {
    await ada?.[Symbol.asyncDispose]()
    await Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()])
  })

  test.each([
    ['a statement', 'explore', 'SQL', 'SEL', 'SELECT'],
    ['a definition', 'views/new', 'Definition', 'col', 'columns:'],
  ])('%s is completed, selected and typed over within the policy', async (_, path, label, typed, completed) => {
    await page.goto(`/in/${ada.account}/${path}`)
    const box = page.getByRole('textbox', { name: label, exact: true })
    await box.focus()
    await page.keyboard.type(typed)
    await page.getByRole('listbox', { name: 'Completions' }).waitFor()
    // The list takes keys only after a moment, so that nobody accepts what just appeared, and nothing while it looks for more.
    const option = page.getByRole('option', { name: completed.replace(':', '') })
    await until('the completion', async () => {
      await option.click({ timeout: 1000 }).catch(() => undefined)
      return (await box.textContent()) === completed
    })
    await page.keyboard.press('Control+a')
    await page.keyboard.type('x')
    await expect.poll(() => box.textContent()).toBe('x')
    await page.keyboard.press('Control+a')
    await page.keyboard.press('Backspace')
    expect(ada.complaints).toEqual([])
  })

  test('text that arrives before the event of the selection that it replaces is typed within the policy', async () => {
    await page.goto(`/in/${ada.account}/explore`)
    const box = page.getByRole('textbox', { name: 'SQL', exact: true })
    await box.fill('SELECT 1')
    await box.locator('span', { hasText: 'SELECT' }).waitFor()
    await page.evaluate(`addEventListener('selectionchange', (event) => { if (event.isTrusted) event.stopPropagation() }, true)`)
    await box.selectText()
    await page.keyboard.insertText('SELECT 2')
    await expect.poll(() => box.textContent()).toBe('SELECT 2')
    expect(ada.complaints).toEqual([])
  })

  test('the name of a secret is completed, and a problem is marked where it is in the expression', async () => {
    await inlet.ok('POST', '/v1/secrets', { name: 'email_key' })
    await page.goto(`/in/${ada.account}/views/new`)
    const box = page.getByRole('textbox', { name: 'Definition', exact: true })
    await box.fill('columns:\n  - { name: a, type: VARCHAR, path: $.a }\n  - { name: b, type: VARCHAR, value: "hmac_sha256(')
    await box.focus()
    await page.keyboard.press('Control+End')
    await page.keyboard.type("'e")
    await page.getByRole('option', { name: 'email_key' }).waitFor()
    await page.keyboard.press('Escape')
    // Not filled: problems that are marked while the box is filled undo the selection that the browser has not reported yet.
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(
      'columns:\n  - { name: a, type: VARCHAR, path: $.a }\n  - { name: b, type: VARCHAR, value: "lower(aa) || a" }\n',
    )
    await page.getByText('Line 3, column 45: "aa" is not a column of this view').waitFor()
    await page.getByRole('textbox', { name: 'Definition', exact: true }).fill('')
  })

  test('a wrong statement is explained until it is corrected', async () => {
    await page.goto(`/in/${ada.account}/explore?sql=${encodeURIComponent('SELECT nothing FROM nowhere')}`)
    const alert = page.getByRole('alert')
    await alert.getByText('The statement does not run').waitFor()
    await page.getByRole('textbox', { name: 'SQL' }).focus()
    await page.keyboard.type(' ')
    await alert.waitFor({ state: 'detached' })
  })

  test('a chart draws bars from zero, in proportion to their values', async () => {
    const sql = "SELECT * FROM (VALUES ('push', 222), ('pull', 215), ('none', 0)) AS t(kind, records)"
    await page.goto(`/in/${ada.account}/explore?show=chart&sql=${encodeURIComponent(sql)}`)
    const rows = page.locator('dl[aria-label="records"] > div')
    await rows.first().waitFor()
    const widths = await rows.evaluateAll((all) =>
      all.map((row) => row.querySelector('span[style]')?.getBoundingClientRect().width ?? 0),
    )
    expect(widths[0]).toBeGreaterThan(300)
    expect((widths[1] ?? 0) / (widths[0] ?? 1)).toBeCloseTo(215 / 222, 3)
    expect(widths[2]).toBe(0)
    expect(await accessibilityFindings(page)).toEqual([])
  })

  test('a definition is suggested from pasted samples, with a note on values of several types', async () => {
    await page.goto(`/in/${ada.account}/views/new`)
    await page.getByRole('textbox', { name: 'Samples' }).fill('{"sku":"a","amount":1}\n{"sku":"b","amount":"n/a"}')
    await page.getByText('Columns follow from the 2 records in Samples.').waitFor()
    await page.getByRole('button', { name: 'Suggest definition' }).click()
    await page.getByText('is integer and text: it becomes a JSON column').first().waitFor()
    const rows = page.getByRole('region', { name: 'Rows' })
    await rows.getByText('"n/a"').waitFor()
    page.once('dialog', (dialog) => void dialog.accept())
  })

  test('a preview says what it waits for', async () => {
    await page.goto(`/in/${ada.account}/views/new`)
    const says = (title: string) => page.getByRole('heading', { name: title }).waitFor()
    await page.getByRole('textbox', { name: 'Samples' }).fill('{"sku":"a"}')
    await says('The preview needs a definition')
    await page.getByRole('textbox', { name: 'Definition' }).fill('columns: [{ name: sku, type: VARCHR, path: $.sku }]')
    await says('The definition has errors')
    await page.getByRole('textbox', { name: 'Samples' }).fill('')
    await says('The preview needs samples')
    await page.getByRole('textbox', { name: 'Definition' }).fill('')
  })

  test('a refused definition is explained until it is corrected', async () => {
    await page.goto(`/in/${ada.account}/views/${viewId}/edit`)
    const box = page.getByRole('textbox', { name: 'Definition' })
    await box.focus()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('wrong: 1')
    await page.getByRole('button', { name: 'Save draft' }).click()
    const alert = page.getByRole('alert').filter({ hasText: 'This needs a correction' })
    await alert.waitFor()
    await box.focus()
    for (let characters = 0; characters < 'wrong: 1'.length; characters += 1) await page.keyboard.press('Backspace')
    await alert.waitFor({ state: 'detached' })
    await page.getByText('The definition has an error').waitFor({ state: 'detached' })
  })
})
